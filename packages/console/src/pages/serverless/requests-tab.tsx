import { useEffect, useState } from 'react';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useApi } from '../../api/queries.ts';
import { usePermissions } from '../../api/session.ts';
import type { JobEntry, JobPage } from '../../api/types.ts';
import { StatusBadge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { formatDuration } from '../../components/format.ts';
import { Card } from '../../components/page.tsx';
import { EmptyState, Loaded } from '../../components/states.tsx';
import { DataTable } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';
import { BulkActions } from './bulk-actions.tsx';
import type { TabProps } from './tab-props.ts';
import { ErrorGroups } from './error-groups.tsx';
import { JobDialog } from './job-dialog.tsx';
import { readJobSearch, searchQuery } from './job-search.ts';
import { JobFilters } from './job-filters.tsx';

/** The jobs of an endpoint. The address holds the filter and the open job. */
export default function RequestsTab({ endpoint }: TabProps) {
  const { id, name } = endpoint;
  const search = readJobSearch(useSearch({ strict: false }));
  const navigate = useNavigate();
  const may = usePermissions();
  /** For each page that was turned to, where the one before it begins; empty for the newest. */
  const [newerOf, setNewerOf] = useState<Readonly<Record<string, string>>>({});
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const { cursor } = search;
  const newer = cursor === undefined ? undefined : newerOf[cursor];
  const jobs = useApi<JobPage>(`/v2/serverless/${id}/jobs`, {
    query: { ...searchQuery(search), limit: 100, cursor },
    everyMs: cursor === undefined ? 10_000 : undefined,
    keepPrevious: true,
  });
  // What is not on screen any more is not selected either, also after a step back.
  const filtered = JSON.stringify(searchQuery(search));
  useEffect(() => setSelected(new Set()), [filtered]);
  const turn = (to: string | undefined, filter = search): void =>
    void navigate({ to: `/serverless/${id}/requests`, search: { ...filter, cursor: to } });
  const older = (next: string): void => {
    setNewerOf({ ...newerOf, [next]: cursor ?? '' });
    turn(next);
  };
  const open = (job: string | undefined): void =>
    void navigate({ to: `/serverless/${id}/requests`, search: { ...search, job } });
  const toggle = (job: string): void => {
    const next = new Set(selected);
    if (!next.delete(job)) next.add(job);
    setSelected(next);
  };
  return (
    <>
      <ErrorGroups
        endpointId={id}
        chosen={search.fingerprint}
        onChoose={(fingerprint) => turn(undefined, { ...search, fingerprint })}
      />
      <Card flush>
        <div style={{ padding: 12 }} className="stack">
          <JobFilters key={filtered} search={search} onChange={(next) => turn(undefined, next)} />
          {may.run(id) && may.write && (
            <BulkActions
              endpointId={id}
              search={search}
              selected={selected}
              onDone={() => setSelected(new Set())}
            />
          )}
        </div>
        <Loaded of={jobs}>
          {({ jobs: rows, pagination }) => (
            <>
              <DataTable
                label="Requests"
                rows={rows}
                rowKey={(job) => job.id}
                columns={[
                  {
                    header: <span className="visually-hidden">Select</span>,
                    cell: (job: JobEntry) => (
                      <input
                        type="checkbox"
                        aria-label={`Select ${job.id}`}
                        checked={selected.has(job.id)}
                        onChange={() => toggle(job.id)}
                      />
                    ),
                  },
                  {
                    header: 'Job',
                    cell: (job) => (
                      <Button small variant="quiet" onClick={() => open(job.id)} title={job.id}>
                        <code>{shortId(job.id)}</code>
                      </Button>
                    ),
                  },
                  { header: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
                  { header: 'Created', cell: ({ createdAt }) => <Ago at={createdAt} /> },
                  { header: 'Waited', kind: 'number', cell: ({ delayTime }) => duration(delayTime) },
                  { header: 'Ran', kind: 'number', cell: ({ executionTime }) => duration(executionTime) },
                  {
                    header: 'Input or error',
                    cell: ({ error, inputPreview }) => (
                      <div className="mono truncate" style={{ maxWidth: 420 }}>
                        {error ?? inputPreview}
                      </div>
                    ),
                  },
                ]}
                empty={
                  Object.keys(searchQuery(search)).length > 0 || cursor !== undefined ? (
                    <EmptyState
                      title={
                        pagination.hasNextPage ? 'Nothing among the jobs scanned so far' : 'No job matches'
                      }
                    />
                  ) : (
                    <EmptyState
                      title="No requests are stored"
                      command={`npx berth run ${name} '{"input": {}}'`}
                    >
                      Send one from the playground, with any client of the RunPod API, or with this command.
                      Requests that have ended are kept for a while.
                    </EmptyState>
                  )
                }
              />
              <div className="row end pager">
                {cursor !== undefined && (
                  <Button onClick={() => turn(newer || undefined)}>
                    {newer === undefined ? 'Newest' : 'Newer'}
                  </Button>
                )}
                {pagination.hasNextPage && pagination.nextCursor !== null && (
                  <Button onClick={() => older(pagination.nextCursor ?? '')}>Older</Button>
                )}
              </div>
            </>
          )}
        </Loaded>
      </Card>
      <JobDialog endpoint={endpoint} jobId={search.job} onClose={() => open(undefined)} />
    </>
  );
}

function duration(ms: number | null): string {
  return ms === null ? '–' : formatDuration(ms);
}

/** Ids begin with their time; the end tells jobs apart. */
function shortId(id: string): string {
  return id.length <= 20 ? id : `${id.slice(0, 13)}…${id.slice(-6)}`;
}
