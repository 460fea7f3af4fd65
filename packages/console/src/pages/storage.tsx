import { Page } from '../components/page.tsx';
import { EmptyState } from '../components/states.tsx';

export default function StoragePage() {
  return (
    <Page title="Storage">
      <EmptyState title="This page is on its way" command="npx berth volume --help" />
    </Page>
  );
}
