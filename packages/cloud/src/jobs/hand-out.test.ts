import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Job } from '../store/job-records.ts';
import type { TakenJob, TakeTerms } from '../store/jobs.ts';
import { systemClock } from '../support/clock.ts';
import { createLog } from '../support/log.ts';
import { HandOut } from './hand-out.ts';

test('a take asks for a few, for more while there is more, and for a few again', async () => {
  let waiting = 1_000;
  const asked: number[] = [];
  const handOut = new HandOut({
    store: {
      take: (_endpointId: string, terms: TakeTerms) => {
        const claims = terms.claims();
        asked.push(claims.length);
        const taken = claims.slice(0, waiting).map(({ lease }): TakenJob => ({ job: { lease } as Job, request: '' }));
        waiting -= taken.length;
        return Promise.resolve(taken);
      },
      running: () => Promise.resolve([]),
    },
    clock: systemClock,
    log: createLog({ level: 'silent', format: 'json' }),
    onTaken: () => undefined,
    onGiven: () => undefined,
    giveBack: () => Promise.resolve(),
  });
  const wait = async (): Promise<number> => (await handOut.wait('e', 'w', 400, 10_000, new AbortController().signal)).length;
  assert.deepEqual([await wait(), await wait(), await wait(), await wait()], [16, 128, 400, 400]);
  assert.equal(await wait(), 56);
  waiting = 1;
  assert.equal(await wait(), 1);
  waiting = 1;
  assert.equal(await wait(), 1);
  assert.deepEqual(asked, [16, 128, 400, 400, 400, 112, 16]);
});
