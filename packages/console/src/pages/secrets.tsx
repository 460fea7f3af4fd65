import { Page } from '../components/page.tsx';
import { EmptyState } from '../components/states.tsx';

export default function SecretsPage() {
  return (
    <Page title="Secrets">
      <EmptyState title="This page is on its way" command="npx berth --help" />
    </Page>
  );
}
