import { Page } from '../components/page.tsx';
import { EmptyState } from '../components/states.tsx';

export default function NewPodPage() {
  return (
    <Page title="Deploy a pod">
      <EmptyState title="This page is on its way" command="npx berth pod create --help" />
    </Page>
  );
}
