import { Page } from '../../components/page.tsx';

export default function NewEndpointPage() {
  return <Page title="New endpoint">{null}</Page>;
}
