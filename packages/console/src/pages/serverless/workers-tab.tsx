import { lazy, Suspense, useState } from 'react';
import { Link } from '@tanstack/react-router';
import { useApi, useWrite } from '../../api/queries.ts';
import { usePermissions } from '../../api/session.ts';
import type { Worker, WorkerList } from '../../api/types.ts';
import { Badge, StatusBadge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { ConfirmDialog, Dialog } from '../../components/dialog.tsx';
import { formatDuration } from '../../components/format.ts';
import { Card } from '../../components/page.tsx';
import { EmptyState, Loaded, Note, Skeleton } from '../../components/states.tsx';
import { DataTable } from '../../components/table.tsx';
import { useUrlState } from '../../components/url-state.ts';
import type { TabProps } from './tab-props.ts';
import { WorkerDialog } from './worker-dialog.tsx';

const Terminal = lazy(() => import('../../components/terminal.tsx'));

/** The reason of an endpoint without work, which is no problem. */
const NOTHING_TO_DO = 'no worker wanted yet';

export default function WorkersTab({ endpoint: { id, name } }: TabProps) {
  const workers = useApi<WorkerList>(`/v2/serverless/${id}/workers`, { everyMs: 5_000 });
  const { write } = usePermissions();
  const [terminal, setTerminal] = useState<Worker>();
  const [details, setDetails] = useUrlState('worker');
  const [stopping, setStopping] = useState<Worker>();
  const stop = useWrite(`/v2/serverless/${id}/workers`);
  return (
    <Loaded of={workers}>
      {({ workers: rows, reason }) => (
        <>
          {reason !== null && reason !== NOTHING_TO_DO && <Note tone="warn">{reason}</Note>}
          <Card flush>
            <DataTable
              label="Workers"
              rows={rows}
              rowKey={(worker) => worker.id}
              columns={[
                {
                  header: 'Worker',
                  cell: (worker) => (
                    <Button small variant="quiet" onClick={() => setDetails(worker.id)}>
                      <code>{worker.id}</code>
                    </Button>
                  ),
                },
                {
                  header: 'State',
                  cell: (worker) => (
                    <span className="row">
                      <StatusBadge status={worker.status} />
                      {worker.isStale && <Badge tone="warn">earlier release</Badge>}
                    </span>
                  ),
                },
                { header: 'Release', kind: 'number', cell: ({ version }) => version ?? '–' },
                {
                  header: 'Runs',
                  cell: ({ uptimeSeconds }) =>
                    uptimeSeconds === null ? '–' : formatDuration(uptimeSeconds * 1000),
                },
                { header: 'Where', cell: ({ dataCenterId }) => dataCenterId ?? '–' },
                {
                  header: 'Channel',
                  cell: ({ accelerated }) =>
                    accelerated ? (
                      <Badge tone="good">accelerated</Badge>
                    ) : (
                      <span className="muted">plain</span>
                    ),
                },
                { header: 'About', cell: (worker) => <span className="muted">{worker.reason}</span> },
                {
                  header: '',
                  kind: 'actions',
                  cell: (worker) => (
                    <>
                      <Link
                        className="button small quiet"
                        to={`/serverless/${id}/logs`}
                        search={{ worker: worker.id }}
                      >
                        Log
                      </Link>
                      {write && (
                        <>
                          <Button small variant="quiet" onClick={() => setTerminal(worker)}>
                            Terminal
                          </Button>
                          <Button
                            small
                            variant="quiet"
                            aria-label={`Stop worker ${worker.id}`}
                            onClick={() => setStopping(worker)}
                          >
                            Stop
                          </Button>
                        </>
                      )}
                    </>
                  ),
                },
              ]}
              empty={
                <EmptyState title="No worker runs now" command={`npx berth run ${name} '{"input": {}}'`}>
                  Workers start when there is work, up to the maximum of the endpoint, and stop when there is
                  none.
                </EmptyState>
              }
            />
          </Card>
          <WorkerDialog
            endpointId={id}
            worker={rows.find((worker) => worker.id === details)}
            onClose={() => setDetails('')}
          />
          <ConfirmDialog
            open={stopping !== undefined}
            onClose={() => setStopping(undefined)}
            title={`Stop worker ${stopping?.id ?? ''}?`}
            lost={
              'It gets no more jobs, and ends when it has finished those that it has; nothing of them is ' +
              'lost. Where there is work for it, another worker starts.'
            }
            action="Stop the worker"
            onConfirm={() =>
              stop.mutateAsync({ path: `/v2/serverless/${id}/workers/${stopping?.id ?? ''}/stop` })
            }
          />
          <Dialog
            open={terminal !== undefined}
            onClose={() => setTerminal(undefined)}
            title={`Terminal of worker ${terminal?.id ?? ''}`}
            shape="wide"
          >
            {terminal !== undefined && (
              <Suspense fallback={<Skeleton />}>
                <Terminal path={`/v2/serverless/${id}/workers/${terminal.id}/terminal`} />
              </Suspense>
            )}
          </Dialog>
        </>
      )}
    </Loaded>
  );
}
