import { Link, useParams } from '@tanstack/react-router';
import { useAllPages } from '../api/all-pages.ts';
import { useApi } from '../api/queries.ts';
import type { Cluster, Pod } from '../api/resources.ts';
import { Badge, StatusBadge } from '../components/badge.tsx';
import { Card, Facts, Page } from '../components/page.tsx';
import { ResourceList } from '../components/resource-list.tsx';
import { ErrorNote, Skeleton } from '../components/states.tsx';
import { Ago } from '../components/time.tsx';
import { hardwareOf } from './pods/pod-words.ts';

export default function ClusterPage() {
  const { id = '' }: { id?: string } = useParams({ strict: false });
  const cluster = useApi<Cluster>(`/v2/clusters/${id}`, { everyMs: 10_000 });
  const pods = useAllPages<Pod>(`/v2/clusters/${id}/pods`, 'pods', { everyMs: 10_000 });
  const crumbs = [{ to: '/clusters', label: 'Clusters' }];
  if (cluster.data === undefined)
    return (
      <Page title="Cluster" crumbs={crumbs}>
        {cluster.error === null ? <Skeleton /> : <ErrorNote error={cluster.error} />}
      </Page>
    );
  const found = cluster.data;
  return (
    <Page
      title={found.name}
      crumbs={crumbs}
      badge={<Badge>{found.type.toLowerCase()}</Badge>}
      description={<code>{found.id}</code>}
    >
      <ResourceList
        label="Pods of the cluster"
        title="Pods"
        of={pods}
        rowKey={(pod) => pod.id}
        rowName={({ name }) => name}
        searchText={({ name, id: podId }) => `${name} ${podId}`}
        columns={[
          { header: 'Rank', kind: 'number', cell: (pod) => pod.cluster?.rank ?? '' },
          { header: 'Name', cell: (pod) => <Link to={`/pods/${pod.id}`}>{pod.name}</Link> },
          { header: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
          { header: 'Address', cell: (pod) => <code>{pod.cluster?.ip ?? ''}</code> },
          { header: 'Role', cell: (pod) => pod.cluster?.role?.toLowerCase() ?? '' },
          { header: 'Hardware', cell: hardwareOf },
        ]}
        empty={<p className="empty">It has no pods any more.</p>}
      />
      <Card title="About">
        <Facts
          facts={[
            [
              'Shape',
              `${found.compute.podCount} pods with ${found.compute.gpuCountPerPod} × ${found.compute.gpuTypeId}`,
            ],
            ['Data center', found.dataCenterId ?? 'none'],
            ['Network', <code>{found.network?.cidr ?? 'none'}</code>],
            ['SSH of the first', <code>{found.primary?.sshEndpoint ?? 'expose 22/tcp to have it'}</code>],
            ['Created', <Ago at={found.createdAt} />],
          ]}
        />
      </Card>
    </Page>
  );
}
