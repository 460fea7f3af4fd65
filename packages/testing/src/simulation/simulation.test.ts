import assert from 'node:assert/strict';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { SeedRange, SeedReport } from './seed-thread.ts';
import { simulate } from './simulation.ts';
import { SimulationDatabase } from './simulation-database.ts';

/** `npm run simulate` runs more of them. The unit tier is to end within a minute. */
const SEEDS = Number(
  process.env['BERTH_SIMULATION_SEEDS'] ?? (process.env['BERTH_TEST_TIER'] === 'unit' ? 100 : 1_000),
);
const FIRST_SEED = Number(process.env['SEED'] ?? 1);
const THREADS = Math.min(2, availableParallelism(), SEEDS);

test(`${SEEDS} seeds keep every rule, and depend on nothing before them`, async (context) => {
  const last = FIRST_SEED + SEEDS - 1;
  const threads = await Promise.all(
    Array.from({ length: THREADS }, (_, index) =>
      runInThread({ first: FIRST_SEED + index, last, step: THREADS }),
    ),
  );
  for (const { seed, failure } of threads.flat())
    assert.equal(failure, undefined, `seed ${seed} (npm run simulate -- --seed ${seed}): ${failure}`);
  // What the last seed of a thread did after hundreds of others, it does alone.
  for (const reports of threads) {
    const { seed, hash } = reports.at(-1) ?? assert.fail('a thread ran no seed');
    context.diagnostic(`seed ${seed}, the run number ${reports.length} of its thread: trace ${hash}`);
    const alone = await simulate({ seed, database: await SimulationDatabase.create() });
    assert.equal(
      alone.hash,
      hash,
      `seed ${seed} alone is another run than after ${reports.length - 1} others`,
    );
    assert.ok(alone.steps > 100);
  }
});

async function runInThread(range: SeedRange): Promise<SeedReport[]> {
  const thread = new Worker(new URL('./seed-thread.ts', import.meta.url), {
    workerData: range,
    // Most of what a run leaves is collected where it is young.
    resourceLimits: { maxYoungGenerationSizeMb: 64 },
  });
  const reports: SeedReport[] = [];
  thread.on('message', (report: SeedReport) => void reports.push(report));
  try {
    const [exitCode] = (await once(thread, 'exit')) as [number];
    assert.equal(exitCode, 0);
  } catch (error) {
    const seed = (reports.at(-1)?.seed ?? range.first - range.step) + range.step;
    throw new Error(`seed ${seed} ended its thread (npm run simulate -- --seed ${seed})`, { cause: error });
  }
  return reports;
}
