import { Page } from '../components/page.tsx';
import { EmptyState } from '../components/states.tsx';

export default function SystemPage() {
  return (
    <Page title="System">
      <EmptyState title="This page is on its way" command="npx berth doctor" />
    </Page>
  );
}
