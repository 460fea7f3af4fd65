import { Page } from '../components/page.tsx';
import { EmptyState } from '../components/states.tsx';

export default function KeysPage() {
  return (
    <Page title="Keys & sessions">
      <EmptyState title="This page is on its way" command="npx berth key --help" />
    </Page>
  );
}
