import assert from 'node:assert/strict';
import type { BreakingProxy } from '../../packages/testing/src/breaking-proxy.ts';
import type { ConformanceFixture } from './conformance-fixture.ts';
import type { WorkerProcess } from './worker-process.ts';

// A connection that breaks in every state: nothing is lost, no job runs twice, and no result counts twice.

type Channel = 'fast' | 'public';

const RESULT = { fast: /(?:^|\n)D /, public: /\/job-done\// };
const CHUNK = { fast: /(?:^|\n)S /, public: /\/job-stream\// };
const JOB = { fast: /(?:^|\n)J /, public: /"input"/ };

export async function breakWhileWaitingAndWorking(
  fixture: ConformanceFixture,
  worker: WorkerProcess,
  proxy: BreakingProxy,
): Promise<void> {
  const [runs, until] = [fixture.path('runs'), fixture.path('until')];
  proxy.cut();
  assert.equal((await fixture.result({ do: 'echo', value: 2 })).output, 2);
  const id = await fixture.run({ do: 'wait', until, value: 3, runs, says: 'at work' });
  await fixture.printed(worker, 'at work\n');
  proxy.cut();
  fixture.touch(until);
  assert.equal((await fixture.end(id)).output, 3);
  assert.equal(fixture.runsOf(runs, id), 1);
}

export async function breakWithJobOrResult(
  fixture: ConformanceFixture,
  proxy: BreakingProxy,
  channel: Channel,
): Promise<void> {
  for (const where of [
    { direction: 'to the worker', at: JOB[channel], forward: false },
    { direction: 'to the server', at: RESULT[channel], forward: false },
    { direction: 'to the server', at: RESULT[channel], forward: true },
  ] as const) {
    const runs = fixture.path('runs');
    const broken = proxy.breakAt(where);
    const id = await fixture.run({ do: 'echo', value: String(where.at), runs });
    await broken;
    assert.equal((await fixture.end(id)).output, String(where.at));
    assert.equal(fixture.runsOf(runs, id), 1, `${where.direction}, ${where.at}, forwarded: ${where.forward}`);
  }
}

/** More often than a job is retried here: one that does not reach its worker was not tried. */
export async function breakWithJobTwice(
  fixture: ConformanceFixture,
  proxy: BreakingProxy,
  channel: Channel,
): Promise<void> {
  const runs = fixture.path('runs');
  const where = { direction: 'to the worker', at: JOB[channel], forward: false } as const;
  const first = proxy.breakAt(where);
  const id = await fixture.run({ do: 'echo', value: 'here at last', runs });
  await first;
  await proxy.breakAt(where);
  assert.equal((await fixture.end(id)).output, 'here at last');
  assert.equal(fixture.runsOf(runs, id), 1);
}

export async function breakWithChunk(
  fixture: ConformanceFixture,
  proxy: BreakingProxy,
  channel: Channel,
): Promise<void> {
  for (const forward of [false, true]) {
    const broken = proxy.breakAt({ direction: 'to the server', at: CHUNK[channel], forward });
    const id = await fixture.run({ count: 20, pauseMs: 5 });
    await broken;
    const chunks = await fixture.chunks(id);
    // The public protocol does not number chunks: one whose acknowledgement was lost may come twice.
    assert.deepEqual(
      channel === 'fast' ? chunks : [...new Set(chunks)],
      Array.from({ length: 20 }, (_, number) => number),
    );
    assert.equal((await fixture.status(id)).status, 'COMPLETED');
  }
}
