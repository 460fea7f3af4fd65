import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KEEP_LOGS_MS } from '../engines/engine.ts';
import { ManualClock } from '../support/clock.ts';
import { createLog } from '../support/log.ts';
import { Fleet } from './fleet.ts';
import type { FleetParts } from './fleet.ts';

test('a worker that ended is remembered as long as its log can be read', async () => {
  const clock = new ManualClock();
  const forgotten = Promise.withResolvers<number>();
  const store = {
    forgetWorkers: async (endedBefore: number) => {
      forgotten.resolve(endedBefore);
      return [];
    },
  };
  const fleet = new Fleet({ store, queue: {}, engines: new Map(), clock, log: createLog({ level: 'silent', format: 'json' }) } as unknown as FleetParts);
  await fleet.start();
  assert.equal(await forgotten.promise, clock.now() - KEEP_LOGS_MS);
  await fleet.close();
});
