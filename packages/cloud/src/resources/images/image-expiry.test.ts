import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../support/clock.ts';
import { createLog } from '../../support/log.ts';
import { ImageExpiry } from './image-expiry.ts';

const DAY_MS = 86_400_000;

test('images expire by the age that is set, and a failure ends nothing', async () => {
  const clock = new ManualClock();
  const asked: number[] = [];
  const pruned: number[] = [];
  const images = {
    expire: async (before: number): Promise<string[]> => {
      asked.push(clock.now() - before);
      if (asked.length === 1) throw new Error('the disk is gone');
      return [];
    },
    pruneFetched: async (unusedSince: number): Promise<string[]> => {
      pruned.push(clock.now() - unusedSince);
      return ['registry.example/a:1'];
    },
  };
  const expiry = new ImageExpiry({
    images,
    clock,
    keepDays: 3,
    log: createLog({ level: 'silent', format: 'json' }),
  });
  await expiry.check();
  await expiry.check();
  assert.deepEqual(asked, [3 * DAY_MS, 3 * DAY_MS]);
  assert.deepEqual(pruned, [3 * DAY_MS]);
  await expiry.close();
});
