import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import { DATABASES } from '../../../../testing/src/test-database.ts';
import { ended, submitted, taken } from '../migrations/old-job-rows.fixture.ts';
import { NOW } from '../queue-settings.fixture.ts';
import { clockTable } from './clock.table.ts';

const HOUR_MS = 3_600_000;

for (const kind of DATABASES) {
  describe(`time in the database, on ${kind}`, () => {
    let place: MigratedDatabase;
    before(async () => {
      place = await createMigratedDatabase(kind);
    });
    after(() => place.drop());

    test('due times move only where no job waits or runs', async () => {
      const clock = clockTable(place.database);
      const jobs = place.database.jobs();
      const whole = submitted(1);
      await jobs.submit(whole, undefined);
      assert.equal(await clock.moveDueTimes(HOUR_MS, assert.fail), false);
      const before = taken(whole);
      await jobs.change('e', 1, () => ({ job: before.job }));
      assert.equal(await clock.moveDueTimes(HOUR_MS, assert.fail), false);
      const done = ended(before, '1', null);
      await jobs.change('e', 1, () => ({ job: done.job, payloads: done.payloads }) as never);
      let isMoved = false;
      assert.equal(await clock.moveDueTimes(HOUR_MS, () => (isMoved = true)), true);
      assert.equal(isMoved, true);
      assert.equal((await jobs.find('e', 1))?.job.dueAt, done.job.dueAt + HOUR_MS);
      assert.equal(await jobs.deleteExpired(done.job.dueAt + 1, 10), 0);
      // One that was on its way meanwhile has the old time.
      const late = submitted(2);
      await jobs.submit(late, undefined);
      await clock.moveJobsOf({ from: NOW - 1, to: NOW + 1_000 }, HOUR_MS);
      const { job } = (await jobs.find('e', 2)) ?? assert.fail();
      assert.deepEqual([job.ttlAt, job.dueAt], [late.job.ttlAt + HOUR_MS, late.job.dueAt + HOUR_MS]);
    });

    test('the clock of PostgreSQL and the shared time are read together', async () => {
      const clock = clockTable(place.database);
      if (kind === 'sqlite') return assert.equal(await clock.databaseTime(), undefined);
      assert.equal((await clock.databaseTime())?.shared, undefined);
      await clock.saveShared({ offset: -5, writtenAt: 1 });
      await clock.saveShared({ offset: -7, writtenAt: 2 });
      const found = await clock.databaseTime();
      assert.deepEqual(found?.shared, { offset: -7, writtenAt: 2 });
      assert.ok(Number.isSafeInteger(found?.now));
    });
  });
}
