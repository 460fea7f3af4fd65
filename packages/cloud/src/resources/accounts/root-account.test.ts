import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createTestDatabase } from '../../../../testing/src/test-database.ts';
import type { TestDatabase } from '../../../../testing/src/test-database.ts';
import { openStore } from '../../store/open-store.ts';
import { ManualClock } from '../../support/clock.ts';
import { hashApiKey, Sealer } from '../../support/crypto.ts';
import { randomIds } from '../../support/ids.ts';
import type { ResourceContext } from '../resource-context.ts';
import { ensureRootAccount } from './root-account.ts';
import { ROOT_ACCOUNT_ID } from '../../domain/caller.ts';
import { EventBus } from '../../support/event-bus.ts';

describe('the root account', () => {
  let database: TestDatabase;
  let context: ResourceContext;
  const rootHash = async (): Promise<string | undefined> => (await context.store.keys.findRoot())?.hash;

  before(async () => {
    database = await createTestDatabase('sqlite');
    const onError = (error: Error): never => {
      throw error;
    };
    context = {
      store: await openStore({
        database: '',
        data: database.data,
        poolSize: 1,
        sealer: new Sealer(Buffer.alloc(32)),
        onError,
      }),
      clock: new ManualClock(),
      ids: randomIds,
      events: new EventBus(),
    };
  });
  after(async () => {
    await context.store.close();
    await database.drop();
  });

  test('is created once at the first start, also when several servers start together', async () => {
    const made = await Promise.all([
      ensureRootAccount(context, undefined),
      ensureRootAccount(context, undefined),
      ensureRootAccount(context, undefined),
    ]);
    const created = made.map((start) => start.created).filter((key) => key !== undefined);
    assert.equal(created.length, 1);
    assert.equal(await rootHash(), hashApiKey(created[0] ?? ''));
    assert.deepEqual(
      (await context.store.accounts.list()).map(({ id }) => id),
      [ROOT_ACCOUNT_ID],
    );
  });

  test('keeps its key if none is given, and takes a given one', async () => {
    const before = await rootHash();
    assert.deepEqual(await ensureRootAccount(context, undefined), { created: undefined });
    assert.equal(await rootHash(), before);
    assert.deepEqual(await ensureRootAccount(context, 'a given key of ours'), { created: undefined });
    assert.equal(await rootHash(), hashApiKey('a given key of ours'));
  });

  test('has one audit entry for a replaced key', async () => {
    await ensureRootAccount(context, 'a given key of ours');
    const entries = await context.store.audit.list(ROOT_ACCOUNT_ID, { limit: 10 });
    assert.deepEqual(
      entries.map(({ action, resource, keyId, interface: through }) => [action, resource, keyId, through]),
      [
        ['replace', 'API key', null, 'system'],
        ['create', 'account', null, 'system'],
      ],
    );
  });
});
