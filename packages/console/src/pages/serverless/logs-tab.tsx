import { useMemo } from 'react';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useApi } from '../../api/queries.ts';
import type { WorkerList } from '../../api/types.ts';
import { useLogRows } from '../../components/log-rows.ts';
import { LogView, useLogFilterOfPage } from '../../components/log-view.tsx';
import { EmptyState, Skeleton } from '../../components/states.tsx';
import type { TabProps } from './tab-props.ts';

/** A browser opens few connections to one server: so many workers are followed at once. */
const MAX_FOLLOWED = 3;
const TAIL = 1_000;

export default function LogsTab({ endpoint: { id, name } }: TabProps) {
  const { worker: chosen, at }: { worker?: string; at?: string } = useSearch({ strict: false });
  const from = Date.parse(at ?? '');
  const navigate = useNavigate();
  const workers = useApi<WorkerList>(`/v2/serverless/${id}/workers`, { everyMs: 5_000 });
  const ids = workers.data?.workers.map((worker) => worker.id) ?? [];
  const followed = chosen === undefined ? ids.slice(0, MAX_FOLLOWED) : [chosen];
  const key = followed.join(',');
  const sources = useMemo(
    () =>
      key === ''
        ? []
        : key.split(',').map((worker) => ({
            url: `/v2/serverless/${id}/workers/${worker}/logs?tail=${TAIL}`,
            origin: worker.slice(0, 6),
          })),
    [id, key],
  );
  const log = useLogRows(sources);
  const filter = useLogFilterOfPage();
  if (workers.data === undefined) return <Skeleton />;
  if (followed.length === 0)
    return (
      <EmptyState title="No worker runs now" command={`npx berth run ${name} '{"input": {}}'`}>
        Its log appears here as soon as a worker starts. The log of a worker that has ended is found through
        its job.
      </EmptyState>
    );
  return (
    <LogView
      {...log}
      filter={filter}
      name={`${name}-${chosen ?? 'workers'}`}
      at={Number.isNaN(from) ? undefined : from}
      extra={
        <select
          className="input"
          aria-label="Worker"
          value={chosen ?? ''}
          onChange={({ target }) =>
            void navigate({
              to: `/serverless/${id}/logs`,
              search: ({ worker: _, at: __, ...rest }: Record<string, unknown>) => ({
                ...rest,
                ...(target.value !== '' && { worker: target.value }),
              }),
              replace: true,
            })
          }
        >
          <option value="">
            {ids.length > MAX_FOLLOWED ? `the first ${MAX_FOLLOWED} of ${ids.length} workers` : 'all workers'}
          </option>
          {[...new Set([...ids, ...(chosen === undefined ? [] : [chosen])])].map((worker) => (
            <option key={worker} value={worker}>
              {worker}
            </option>
          ))}
        </select>
      }
    />
  );
}
