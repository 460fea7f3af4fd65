import { lazy, Suspense, useState } from 'react';
import { useParams } from '@tanstack/react-router';
import { useApi } from '../api/queries.ts';
import type { Pod, PodAction } from '../api/resources.ts';
import { usePermissions } from '../api/session.ts';
import { StatusBadge } from '../components/badge.tsx';
import { Button } from '../components/button.tsx';
import { useLogRows } from '../components/log-rows.ts';
import { LogView, useLogFilterOfPage } from '../components/log-view.tsx';
import { Card, LinkTabs, Page } from '../components/page.tsx';
import { EmptyState, ErrorNote, Note, Skeleton } from '../components/states.tsx';
import { PodActionDialog } from './pods/pod-actions.tsx';
import { PodConnect } from './pods/pod-connect.tsx';
import { PodFiles } from './pods/pod-files.tsx';
import { PodSettings } from './pods/pod-settings.tsx';

const PodMetrics = lazy(() => import('./pods/pod-metrics.tsx'));
const Terminal = lazy(() => import('../components/terminal.tsx'));

const TABS = [
  ['connect', 'Connect'],
  ['terminal', 'Terminal'],
  ['files', 'Files'],
  ['logs', 'Logs'],
  ['metrics', 'Metrics'],
  ['settings', 'Settings'],
] as const;
const LABELS: Record<PodAction, string> = {
  start: 'Start',
  stop: 'Stop',
  restart: 'Restart',
  terminate: 'Terminate',
};

export default function PodPage() {
  const { id = '', tab = 'connect' }: { id?: string; tab?: string } = useParams({ strict: false });
  const pod = useApi<Pod>(`/v2/pods/${id}`, { everyMs: 10_000 });
  const { write } = usePermissions();
  const [action, setAction] = useState<PodAction>();
  const crumbs = [{ to: '/pods', label: 'Pods' }];
  if (pod.data === undefined)
    return (
      <Page title="Pod" crumbs={crumbs}>
        {pod.error === null ? <Skeleton /> : <ErrorNote error={pod.error} retry={() => void pod.refetch()} />}
      </Page>
    );
  const found = pod.data;
  // A terminal and the files of a pod need a key that may write, as a command in the pod does.
  const tabs = TABS.filter(([name]) => write || (name !== 'terminal' && name !== 'files'));
  return (
    <Page
      title={found.name}
      crumbs={crumbs}
      badge={<StatusBadge status={found.status} />}
      description={found.statusDetail ?? <code>{found.id}</code>}
      actions={
        write &&
        found.actions.map((each) => (
          <Button
            key={each}
            variant={each === 'terminate' ? 'danger' : 'plain'}
            onClick={() => setAction(each)}
          >
            {LABELS[each]}
          </Button>
        ))
      }
    >
      <LinkTabs
        label="Pod"
        tabs={tabs.map(([name, label]) => ({
          to: name === 'connect' ? `/pods/${id}` : `/pods/${id}/${name}`,
          label,
        }))}
      />
      <Suspense fallback={<Skeleton />}>
        <Tab pod={found} tab={tab} write={write} />
      </Suspense>
      <PodActionDialog
        asked={action === undefined ? undefined : { pod: found, action }}
        onClose={() => setAction(undefined)}
      />
    </Page>
  );
}

function Tab({ pod, tab, write }: { pod: Pod; tab: string; write: boolean }) {
  switch (tab) {
    case 'connect':
      return <PodConnect pod={pod} />;
    case 'terminal':
      return write ? (
        <WhileItRuns pod={pod}>{<Terminal path={`/v2/pods/${pod.id}/terminal`} />}</WhileItRuns>
      ) : null;
    case 'files':
      return write ? (
        <WhileItRuns pod={pod}>
          <PodFiles podId={pod.id} />
        </WhileItRuns>
      ) : null;
    case 'logs':
      return <PodLogs pod={pod} />;
    case 'metrics':
      return <PodMetrics podId={pod.id} />;
    case 'settings':
      return <PodSettings pod={pod} />;
    default:
      return <EmptyState title="There is nothing at this address" />;
  }
}

function WhileItRuns({ pod, children }: { pod: Pod; children: React.ReactNode }) {
  if (pod.status === 'RUNNING') return <>{children}</>;
  return <Note tone="warn">The pod does not run now. Start it first; its log stays readable.</Note>;
}

/** Older lines are read when they are wanted. */
const TAIL = 1_000;

function PodLogs({ pod }: { pod: Pod }) {
  const log = useLogRows([{ url: `/v2/pods/${pod.id}/logs?tail=${TAIL}` }]);
  const filter = useLogFilterOfPage();
  return (
    <Card>
      <LogView {...log} filter={filter} name={pod.name} />
    </Card>
  );
}
