import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { freshDatabase } from '../../../../../tests/support/databases.ts';
import type { TestDatabase } from '../../../../../tests/support/databases.ts';
import { openStore } from '../../store/open.ts';
import { ManualClock } from '../../support/clock.ts';
import { hashKey, Sealer } from '../../support/crypto.ts';
import { randomIds } from '../../support/ids.ts';
import type { Context } from '../context.ts';
import { ensureRoot, ROOT_ACCOUNT_ID } from './root.ts';

describe('the root account', () => {
  let database: TestDatabase;
  let context: Context;
  const rootHash = async (): Promise<string | undefined> => (await context.store.keys.root())?.hash;

  before(async () => {
    database = await freshDatabase('sqlite');
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
    };
  });
  after(async () => {
    await context.store.close();
    await database.drop();
  });

  test('is made at the first start with a new key, and once only, also when several start together', async () => {
    const made = await Promise.all([
      ensureRoot(context, undefined),
      ensureRoot(context, undefined),
      ensureRoot(context, undefined),
    ]);
    const created = made.map((start) => start.created).filter((key) => key !== undefined);
    assert.equal(created.length, 1);
    assert.equal(await rootHash(), hashKey(created[0] ?? ''));
    assert.deepEqual(
      (await context.store.accounts.list()).map(({ id }) => id),
      [ROOT_ACCOUNT_ID],
    );
  });

  test('keeps its key where none is given, and takes the one that is', async () => {
    const before = await rootHash();
    assert.deepEqual(await ensureRoot(context, undefined), { created: undefined });
    assert.equal(await rootHash(), before);
    assert.deepEqual(await ensureRoot(context, 'a given key of ours'), { created: undefined });
    assert.equal(await rootHash(), hashKey('a given key of ours'));
  });

  test('tells of a replaced key in its audit log, once', async () => {
    await ensureRoot(context, 'a given key of ours');
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
