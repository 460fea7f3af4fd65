import type { BenchContext, Database } from '../support/bench-context.ts';
import { createEndpoint, startBerth } from '../support/berth-process.ts';
import type { BerthProcess } from '../support/berth-process.ts';
import { HttpPool } from '../support/http-connection.ts';
import { JOB_BODY } from '../support/job-body.ts';
import type { CleanupScope } from '../support/cleanup-scope.ts';
import { vacuum } from '../support/vacuum.ts';
import { CONCURRENCY } from './filled-queue.ts';
import type { FilledQueue } from './filled-queue.ts';

const CONNECTIONS = 500;

/**
 * A Berth that lives through all runs, as PostgreSQL and the worker processes of all queues do. Every run has
 * an endpoint of its own, filled by `/run`.
 */
export async function filledBerth(
  bench: BenchContext,
  scope: CleanupScope,
  database: Database,
  jobs: number,
): Promise<(role: 'public' | 'channel') => FilledQueue> {
  const postgres = database === 'SQLite' ? undefined : await bench.database(scope);
  const berth = await startBerth({ data: scope.folder('data'), database: postgres?.url ?? '' });
  scope.defer(berth.stop);
  const { url, key } = berth;
  let endpoints = 0;
  return (role) => ({
    name: `Berth, ${role === 'public' ? 'public protocol' : 'fast channel'}, ${database}`,
    open: async () => {
      endpoints += 1;
      const endpointId = await createEndpoint(berth, `bench-${endpoints}`);
      await fillByRun(berth, endpointId, jobs);
      if (postgres !== undefined) await vacuum(postgres.url);
      const ended = async (): Promise<number> => {
        const response = await fetch(`${url}/v2/${endpointId}/health`, {
          headers: { authorization: `Bearer ${key}` },
        });
        return ((await response.json()) as { jobs: { completed: number } }).jobs.completed;
      };
      return { role, target: url, key, queue: endpointId, concurrency: CONCURRENCY, ended };
    },
  });
}

/** Queues jobs as clients do. */
export async function fillByRun({ url, key }: BerthProcess, endpointId: string, jobs: number): Promise<void> {
  const clients = new HttpPool(url, key, CONNECTIONS);
  await clients.opened();
  let asked = 0;
  const client = async (): Promise<void> => {
    while (asked < jobs) {
      asked += 1;
      const { status, body } = await clients.request('POST', `/v2/${endpointId}/run`, JOB_BODY);
      if (status !== 200) throw new Error(`/run answered ${status} ${body}`);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, client));
  clients.close();
}
