import { useMemo } from 'react';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useApi } from '../../api/queries.ts';
import type { WorkerList } from '../../api/types.ts';
import { formatAge } from '../../components/format.ts';
import { useLogRows } from '../../components/log-rows.ts';
import { LogView, useLogFilterOfPage } from '../../components/log-view.tsx';
import { EmptyState, Note, Skeleton } from '../../components/states.tsx';
import type { TabProps } from './tab-props.ts';

/** A browser opens few connections to one server: so many workers are followed at once. */
const MAX_SHOWN = 3;
const TAIL = 1_000;
const ENDED_ONLY = 'No worker runs now. These are the logs of those that ended last.';

export default function LogsTab({ endpoint: { id, name } }: TabProps) {
  const { worker: chosen, at }: { worker?: string; at?: string } = useSearch({ strict: false });
  const from = Date.parse(at ?? '');
  const navigate = useNavigate();
  const workers = useApi<WorkerList>(`/v2/serverless/${id}/workers`, {
    query: { ended: true },
    everyMs: 5_000,
  });
  const running = workers.data?.workers.map((worker) => worker.id) ?? [];
  const ended = workers.data?.ended ?? [];
  const newest = running.length > 0 ? running : ended.map((worker) => worker.id);
  const shown = chosen === undefined ? newest.slice(0, MAX_SHOWN) : [chosen];
  const key = shown.map((worker) => `${worker} ${running.includes(worker)}`).join(',');
  const isKnown = workers.data !== undefined;
  const sources = useMemo(
    () =>
      !isKnown || key === ''
        ? []
        : key.split(',').map((each) => {
            const [worker = '', runs] = each.split(' ');
            return {
              url: `/v2/serverless/${id}/workers/${worker}/logs?tail=${TAIL}`,
              origin: worker.slice(0, 6),
              ended: runs !== 'true',
            };
          }),
    [id, key, isKnown],
  );
  const log = useLogRows(sources);
  const filter = useLogFilterOfPage();
  if (!isKnown) return <Skeleton />;
  if (shown.length === 0)
    return (
      <EmptyState title="No worker has run yet" command={`npx berth run ${name} '{"input": {}}'`}>
        Its log appears here as soon as a worker starts, and stays for a while after it has ended.
      </EmptyState>
    );
  const choose = (worker: string): void =>
    void navigate({
      to: `/serverless/${id}/logs`,
      search: ({ worker: _, at: __, ...rest }: Record<string, unknown>) => ({
        ...rest,
        ...(worker !== '' && { worker }),
      }),
      replace: true,
    });
  const all = running.length > 0 ? 'all workers' : 'the workers that ended last';
  return (
    <>
      {running.length === 0 && (
        <Note>
          {chosen === undefined ? ENDED_ONLY : 'No worker runs now. This is the log of one that ended.'}
        </Note>
      )}
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
            onChange={({ target }) => choose(target.value)}
          >
            <option value="">
              {newest.length > MAX_SHOWN ? `the first ${MAX_SHOWN} of ${newest.length} workers` : all}
            </option>
            {running.map((worker) => (
              <option key={worker} value={worker}>
                {worker}
              </option>
            ))}
            {ended.map(({ id: worker, endedAt }) => (
              <option key={worker} value={worker}>
                {worker}, ended {formatAge(Date.now() - Date.parse(endedAt))}
              </option>
            ))}
            {chosen !== undefined && ![...running, ...ended.map((each) => each.id)].includes(chosen) && (
              <option value={chosen}>{chosen}</option>
            )}
          </select>
        }
      />
    </>
  );
}
