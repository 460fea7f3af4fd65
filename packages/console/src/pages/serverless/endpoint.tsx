import { lazy, Suspense } from 'react';
import type { ComponentType } from 'react';
import { useParams } from '@tanstack/react-router';
import { useApi } from '../../api/queries.ts';
import { usePermissions } from '../../api/session.ts';
import type { Permissions } from '../../api/session.ts';
import type { Endpoint } from '../../api/types.ts';
import { Badge } from '../../components/badge.tsx';
import { CopyButton } from '../../components/copy.tsx';
import { LinkTabs, Page } from '../../components/page.tsx';
import { EmptyState, Loaded, Skeleton } from '../../components/states.tsx';
import type { TabProps } from './tab-props.ts';

interface Tab {
  label: string;
  Content: ComponentType<TabProps>;
  /** Where it makes sense. */
  shown?: (endpoint: Endpoint, may: Permissions) => boolean;
}

const queueOnly = ({ type, id }: Endpoint, may: Permissions): boolean => type === 'QUEUE' && may.readJobs(id);

const TABS: Record<string, Tab> = {
  overview: { label: 'Overview', Content: lazy(() => import('./overview-tab.tsx')) },
  metrics: { label: 'Metrics', Content: lazy(() => import('./metrics-tab.tsx')) },
  requests: { label: 'Requests', Content: lazy(() => import('./requests-tab.tsx')), shown: queueOnly },
  workers: { label: 'Workers', Content: lazy(() => import('./workers-tab.tsx')) },
  logs: { label: 'Logs', Content: lazy(() => import('./logs-tab.tsx')) },
  releases: { label: 'Releases', Content: lazy(() => import('./releases-tab.tsx')) },
  playground: {
    label: 'Playground',
    Content: lazy(() => import('./playground-tab.tsx')),
    shown: ({ id }, may) => may.run(id),
  },
  webhooks: { label: 'Webhooks', Content: lazy(() => import('./webhooks-tab.tsx')), shown: queueOnly },
  settings: { label: 'Settings', Content: lazy(() => import('./settings/settings-tab.tsx')) },
};

/** One endpoint. Its tabs are addresses: `/serverless/{id}/requests`. */
export default function EndpointPage() {
  const { id = '', tab: chosen = 'overview' } = useParams({ strict: false });
  const endpoint = useApi<Endpoint>(`/v2/serverless/${id}`);
  const may = usePermissions();
  return (
    <Loaded of={endpoint}>
      {(found) => {
        const tabs = Object.entries(TABS).filter(([, { shown }]) => shown?.(found, may) ?? true);
        const tab = tabs.find(([name]) => name === chosen)?.[1];
        return (
          <Page
            title={found.name}
            crumbs={[{ to: '/serverless', label: 'Serverless' }]}
            badge={<Badge>{found.type === 'QUEUE' ? 'queue' : 'load balancer'}</Badge>}
            description={
              <span className="row">
                <code>{found.id}</code> <CopyButton text={found.id} label="Copy the id" />
                <span className="mono">{found.image}</span>
              </span>
            }
          >
            <LinkTabs
              label="Parts of the endpoint"
              tabs={tabs.map(([name, { label }]) => ({
                to: name === 'overview' ? `/serverless/${id}` : `/serverless/${id}/${name}`,
                label,
              }))}
            />
            {tab === undefined ? (
              <EmptyState title="There is no such tab here" />
            ) : (
              <Suspense fallback={<Skeleton />}>
                <tab.Content endpoint={found} />
              </Suspense>
            )}
          </Page>
        );
      }}
    </Loaded>
  );
}
