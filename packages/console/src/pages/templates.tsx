import { Page } from '../components/page.tsx';
import { EmptyState } from '../components/states.tsx';

export default function TemplatesPage() {
  return (
    <Page title="Templates">
      <EmptyState title="This page is on its way" command="npx berth --help" />
    </Page>
  );
}
