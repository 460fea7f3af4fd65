import { EmptyState } from '../../components/states.tsx';

export default function MetricsTab() {
  return <EmptyState title="No history yet">It appears as soon as there are requests.</EmptyState>;
}
