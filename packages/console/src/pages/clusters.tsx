import { Page } from '../components/page.tsx';
import { EmptyState } from '../components/states.tsx';

export default function ClustersPage() {
  return (
    <Page title="Clusters">
      <EmptyState title="This page is on its way" command="npx berth --help" />
    </Page>
  );
}
