import { Page } from '../components/page.tsx';

export function OverviewPage() {
  return (
    <Page title="Overview" description="What runs, and what needs you now.">
      {null}
    </Page>
  );
}
