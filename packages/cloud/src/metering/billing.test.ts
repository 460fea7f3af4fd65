import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createTestDatabase, DATABASES } from '../../../testing/src/test-database.ts';
import { SYSTEM_CALLER } from '../domain/caller.ts';
import type { AuditEntry } from '../domain/records.ts';
import { ensureRootAccount } from '../resources/accounts/root-account.ts';
import { openStore } from '../store/open-store.ts';
import { ManualClock } from '../support/clock.ts';
import { Sealer } from '../support/crypto.ts';
import { EventBus } from '../support/event-bus.ts';
import { randomIds } from '../support/ids.ts';
import { Billing } from './billing.ts';
import { usageRules } from './usage-rules.ts';

const HOUR = 3_600_000;

for (const kind of DATABASES)
  test(`what was spent this month begins anew on the first, on ${kind}`, async () => {
    const database = await createTestDatabase(kind);
    const clock = new ManualClock(Date.UTC(2026, 0, 31, 12));
    const store = await openStore({
      database: database.url,
      data: database.data,
      poolSize: 2,
      sealer: new Sealer(Buffer.alloc(32, 1)),
      // A GB costs a tenth of a cent per hour.
      usage: usageRules({ gpu: {}, cpu: {}, disk: { networkVolume: 0.73 } }),
      onError: assert.ifError,
    });
    after(async () => {
      await store.close();
      await database.drop();
    });
    await ensureRootAccount({ store, clock, ids: randomIds, events: new EventBus() }, undefined);
    const { accountId } = SYSTEM_CALLER;
    const audit: AuditEntry = {
      at: clock.now(),
      accountId,
      keyId: null,
      interface: 'system',
      requestId: '',
      action: 'create',
      resource: 'network volume',
      resourceId: 'v',
      changes: [],
    };
    await store.volumes.insert(
      {
        id: 'v',
        accountId,
        name: 'v',
        size: 100,
        dataCenterId: 'LOCAL-1',
        type: 'STANDARD',
        createdAt: clock.now(),
      },
      audit,
    );
    const billing = new Billing(store.ledger, clock);
    const spent = async (): Promise<string> => (await billing.spentThisMonth(accountId)).toFixed(6);
    assert.equal(await spent(), '0.000000');
    clock.advance(10 * HOUR);
    assert.equal(await spent(), '1.000000');
    clock.advance(8 * HOUR);
    assert.equal(await spent(), '0.600000', 'six hours of February');
    assert.equal(await billing.spentThisMonth('another'), 0);
  });
