import assert from 'node:assert/strict';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { before, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { FailedSeed, SeedRange } from './seed-thread.ts';
import { simulate } from './simulation.ts';
import { SimulationDatabase } from './simulation-database.ts';

/** `npm run simulate` runs more of them. */
const SEEDS = Number(process.env['BERTH_SIMULATION_SEEDS'] ?? 100);
const FIRST_SEED = Number(process.env['SEED'] ?? 1);
const THREADS = Math.min(2, availableParallelism());

let database: SimulationDatabase;
before(async () => {
  database = await SimulationDatabase.create();
});

test(`${SEEDS} seeds keep every rule`, async () => {
  const last = FIRST_SEED + SEEDS - 1;
  const ranges = Array.from({ length: THREADS }, (_, index) => ({
    first: FIRST_SEED + index,
    last,
    step: THREADS,
  }));
  const [failed] = (await Promise.all(ranges.map(runInThread))).flat();
  assert.equal(
    failed,
    undefined,
    `seed ${failed?.seed} (npm run simulate -- --seed ${failed?.seed}): ${failed?.message}\n${failed?.trace.join('\n')}`,
  );
});

test('the same seed gives the same run', async () => {
  for (const seed of [3, 9]) {
    const [one, other] = [await simulate({ seed, database }), await simulate({ seed, database })];
    assert.deepEqual(one, other);
    assert.ok(one.jobs > 0 && one.steps > 100);
  }
});

async function runInThread(range: SeedRange): Promise<FailedSeed[]> {
  const thread = new Worker(new URL('./seed-thread.ts', import.meta.url), { workerData: range });
  const failed: FailedSeed[] = [];
  thread.on('message', (message: FailedSeed) => void failed.push(message));
  const [exitCode] = (await once(thread, 'exit')) as [number];
  assert.equal(exitCode, 0, 'a thread of the simulation ended by itself');
  return failed;
}
