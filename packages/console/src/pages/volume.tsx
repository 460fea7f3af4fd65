import { Page } from '../components/page.tsx';
import { EmptyState } from '../components/states.tsx';

export default function VolumePage() {
  return (
    <Page title="Volume">
      <EmptyState title="This page is on its way" command="npx berth volume --help" />
    </Page>
  );
}
