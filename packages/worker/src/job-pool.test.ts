import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JobPool } from './job-pool.ts';
import type { Handler } from './handler.ts';
import { WorkerLog } from './worker-log.ts';
import { nextEventLoopTurn } from './delay.ts';

/** Longer than a prefetched job may wait. */
const BLOCK_MS = 300;

function block(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCK_MS);
}

/** What happens to jobs that all arrive together, in order. */
async function workerTest(handler: Handler, jobs: number, prefetch = 0): Promise<string[]> {
  const told: string[] = [];
  const nothing = (): void => undefined;
  const fixture = new JobPool({
    handler,
    resultOptions: { aggregate: false, refreshWorker: false, identity: { workerId: 'w', hostname: 'h' } },
    concurrency: 1,
    prefetch,
    abortGraceMs: 1_000,
    log: new WorkerLog({}, nothing),
    onCapacityGrew: nothing,
    onCapacityShrank: () => told.push('no more'),
    onJobsChanged: nothing,
    onRefreshRequested: nothing,
  });
  for (let n = 1; n <= jobs; n += 1) {
    fixture.deliver({
      job: { id: String(n), input: n },
      progress: nothing,
      chunk: () => undefined,
      finish: () => {
        told.push(`${n} is sent`);
        process.nextTick(() => told.push(`${n} has left`));
        return undefined;
      },
      returnToQueue: () => {
        process.nextTick(() => told.push(`${n} goes back`));
        return true;
      },
      abandon: nothing,
    });
  }
  await fixture.whenIdle();
  await nextEventLoopTurn();
  return told;
}

for (const [kind, handler] of [
  ['at once', block],
  ['as promises', async () => await Promise.resolve(block())],
] as const) {
  test(`jobs that end ${kind} and never await return the jobs behind them, and their results are sent`, {
    timeout: 10_000,
  }, async () => {
    const begins = ['1 is sent', '1 has left', '2 is sent', '2 has left', 'no more'];
    assert.deepEqual(await workerTest(handler, 5), [
      ...begins,
      '4 goes back',
      '5 goes back',
      '3 is sent',
      '3 has left',
    ]);
    assert.deepEqual(await workerTest(handler, 5, 1), [
      ...begins,
      '5 goes back',
      '3 is sent',
      '3 has left',
      '4 is sent',
      '4 has left',
    ]);
  });
}
