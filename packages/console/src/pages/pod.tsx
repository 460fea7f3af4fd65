import { Page } from '../components/page.tsx';
import { EmptyState } from '../components/states.tsx';

export default function PodPage() {
  return (
    <Page title="Pod">
      <EmptyState title="This page is on its way" command="npx berth pod ls" />
    </Page>
  );
}
