import { Page } from '../../components/page.tsx';

export default function EndpointPage() {
  return <Page title="Endpoint">{null}</Page>;
}
