import { HistoryCharts, USAGE_CHARTS } from '../../components/history.tsx';

/** What a pod used: CPU, memory, GPUs and cost. */
export default function PodMetrics({ podId }: { podId: string }) {
  return <HistoryCharts path={`/v2/pods/${podId}/metrics`} charts={USAGE_CHARTS} />;
}
