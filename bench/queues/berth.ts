import { cpSync } from 'node:fs';
import type { Bench, Database } from '../support/bench.ts';
import { createEndpoint, startBerth } from '../support/berth.ts';
import { fillQueue } from '../support/fill.ts';
import type { Stage } from '../support/stage.ts';
import { vacuum } from '../support/vacuum.ts';
import { CONCURRENCY } from './queue.ts';
import type { FilledQueue } from './queue.ts';

/** A Berth whose endpoint has jobs waiting, kept as a folder and, on PostgreSQL, a database that are copied for each run. */
export async function filledBerth(bench: Bench, stage: Stage, database: Database, jobs: number): Promise<(role: 'public' | 'channel') => FilledQueue> {
  const data = stage.folder('filled');
  const filled = database === 'SQLite' ? undefined : await bench.database(stage);
  const place = { data, database: filled?.url ?? '' };
  const first = await startBerth(place);
  const endpointId = await createEndpoint(first, 'bench');
  await first.stop();
  await fillQueue(place, endpointId, jobs);
  if (filled !== undefined) await vacuum(filled.url);
  return (role) => ({
    name: `Berth, ${role === 'public' ? 'public protocol' : 'fast channel'}, ${database}`,
    open: async (run) => {
      const copy = run.folder('data');
      cpSync(data, copy, { recursive: true });
      const { url, key, stop } = await startBerth({ data: copy, database: filled === undefined ? '' : (await bench.database(run, filled.name)).url });
      run.onEnd(stop);
      const ended = async (): Promise<number> => {
        const response = await fetch(`${url}/v2/${endpointId}/health`, { headers: { authorization: `Bearer ${key}` } });
        return ((await response.json()) as { jobs: { completed: number } }).jobs.completed;
      };
      return { role, at: url, key, queue: endpointId, concurrency: CONCURRENCY, ended };
    },
  });
}
