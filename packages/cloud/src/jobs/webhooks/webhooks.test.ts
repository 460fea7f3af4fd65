import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES } from '../../../../../tests/support/databases.ts';
import { migratedDatabase } from '../../../../../tests/support/migrated-database.ts';
import type { MigratedDatabase } from '../../../../../tests/support/migrated-database.ts';
import type { Delivery } from '../../store/job-records.ts';
import { ManualClock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import { Webhooks } from './webhooks.ts';

const delivery = (id: string, change: Partial<Delivery> = {}): Delivery => ({
  id, endpointId: 'e1', accountId: 'a1', jobId: 'j1', url: 'https://hooks.example/', body: '{}', attempts: 1, nextAt: null, state: 'delivered', lastStatus: 200, lastError: null, createdAt: 1, updatedAt: 1, ...change,
});

for (const kind of DATABASES) {
  describe(`the log of webhooks on ${kind}`, () => {
    const clock = new ManualClock(50);
    let place: MigratedDatabase;
    let webhooks: Webhooks;
    let due = 0;

    before(async () => {
      place = await migratedDatabase(kind);
      const store = place.database.jobs();
      webhooks = new Webhooks({ store, clock, onDue: () => (due += 1) });
      for (const each of [delivery('d1'), delivery('d2', { jobId: 'j2', createdAt: 2, state: 'failed', lastStatus: 500, lastError: 'no' }), delivery('d3', { createdAt: 3, state: 'pending', nextAt: 99 }), delivery('d4', { endpointId: 'e2' })]) await store.saveDelivery(each);
    });
    after(() => place.drop());

    test('lists an endpoint or a job, the newest first', async () => {
      const ids = async (filter: { jobId?: string; limit: number }): Promise<string[]> => (await webhooks.list('e1', filter)).map(({ id }) => id);
      assert.deepEqual(await ids({ limit: 10 }), ['d3', 'd2', 'd1']);
      assert.deepEqual(await ids({ limit: 2 }), ['d3', 'd2']);
      assert.deepEqual(await ids({ limit: 10, jobId: 'j1' }), ['d3', 'd1']);
      assert.deepEqual(await ids({ limit: 10, jobId: 'none' }), []);
    });

    test('sends once more what was delivered or has failed', async () => {
      for (const [id, attempts] of [['d1', 1], ['d2', 1]] as const) {
        const { body: _, ...entry } = await webhooks.redeliver('e1', id);
        assert.deepEqual([entry.id, entry.state, entry.nextAt, entry.attempts], [id, 'pending', 50, attempts]);
        assert.deepEqual((await webhooks.list('e1', { limit: 10 })).find((each) => each.id === id), entry);
      }
      assert.equal(due, 2);
    });

    test('leaves alone what is on its way', async () => {
      assert.equal((await webhooks.redeliver('e1', 'd3')).nextAt, 99);
    });

    test('knows nothing of another endpoint', async () => {
      for (const id of ['d4', 'nothing']) await assert.rejects(webhooks.redeliver('e1', id), (error: unknown) => error instanceof BerthError && error.code === 'not-found');
    });
  });
}
