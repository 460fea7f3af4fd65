import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from '../support/log.ts';
import type { JobReaper } from './job-reaper.ts';
import { JobReaperLoop } from './job-reaper-loop.ts';

/** Only the methods that the loop calls. */
function caretakerOf(
  sweep: () => Promise<boolean>,
  sweepLost: () => Promise<void>,
  awake = (): void => assert.fail('it was not away'),
): JobReaper {
  return { sweepDue: sweep, sweepLost, onProcessResumed: awake } as unknown as JobReaper;
}

const silent = createLog({ level: 'silent', format: 'json' });

test('sweeps as long as there is more, then again a little later, also after a failure', async () => {
  const done: string[] = [];
  const enough = Promise.withResolvers<void>();
  let sweeps = 0;
  const sweeper = new JobReaperLoop(
    caretakerOf(
      async () => {
        sweeps += 1;
        done.push('due');
        if (sweeps === 4) throw new Error('the store is away');
        return sweeps < 3;
      },
      async () => {
        done.push('lost');
        if (done.filter((what) => what === 'lost').length === 4) enough.resolve();
      },
    ),
    silent,
  );
  sweeper.start();
  await enough.promise;
  await sweeper.close();
  assert.deepEqual(done, ['due', 'lost', 'due', 'lost', 'due', 'lost', 'due', 'due', 'lost']);
});

test('a closed loop finishes its sweep and starts no other', async () => {
  const [began, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let rounds = 0;
  const sweeper = new JobReaperLoop(
    caretakerOf(
      async () => {
        rounds += 1;
        began.resolve();
        await release.promise;
        return true;
      },
      async () => undefined,
    ),
    silent,
  );
  sweeper.start();
  await began.promise;
  let closed = false;
  const closing = sweeper.close().then(() => (closed = true));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(closed, false);
  release.resolve();
  await closing;
  assert.equal(rounds, 1);
});

test('a sweep that starts far too late reports the pause before it reaps anything', async (t) => {
  const now = performance.now.bind(performance);
  let late = 0;
  t.mock.method(performance, 'now', () => now() + late);
  for (const [by, expected] of [
    [4_000, ['due']],
    [6_000, ['awake', 'due']],
  ] as const) {
    const done: string[] = [];
    const looked = Promise.withResolvers<void>();
    const sweep = async (): Promise<boolean> => {
      done.push('due');
      looked.resolve();
      return false;
    };
    const sweeper = new JobReaperLoop(
      caretakerOf(
        sweep,
        async () => undefined,
        () => void done.push('awake'),
      ),
      silent,
    );
    sweeper.start();
    late += by;
    await looked.promise;
    await sweeper.close();
    assert.deepEqual(done, expected);
  }
});
