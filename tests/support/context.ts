import type { Caller } from '../../packages/cloud/src/resources/caller.ts';
import { ensureRoot } from '../../packages/cloud/src/resources/accounts/root.ts';
import type { Context } from '../../packages/cloud/src/resources/context.ts';
import type { Account } from '../../packages/cloud/src/store/records.ts';
import { newKey } from '../../packages/cloud/src/resources/keys/new-key.ts';
import { FULL_SCOPES } from '../../packages/cloud/src/resources/keys/new-key.ts';
import { openStore } from '../../packages/cloud/src/store/open.ts';
import { ManualClock } from '../../packages/cloud/src/support/clock.ts';
import { Sealer } from '../../packages/cloud/src/support/crypto.ts';
import { randomIds } from '../../packages/cloud/src/support/ids.ts';
import { freshDatabase } from './databases.ts';

/** What the rules work with, over a real SQLite store and a clock that is turned by hand. */
export interface TestContext extends Context {
  clock: ManualClock;
  root: Caller;
  /** A new account, and the caller that its first key makes. */
  account(name: string): Promise<Caller>;
  close(): Promise<void>;
}

export async function freshContext(): Promise<TestContext> {
  const database = await freshDatabase('sqlite');
  const store = await openStore({
    database: database.url,
    data: database.data,
    poolSize: 1,
    sealer: new Sealer(Buffer.alloc(32, 1)),
    onError: (error) => {
      throw error;
    },
  });
  const context: Context & { clock: ManualClock } = { store, clock: new ManualClock(), ids: randomIds };
  await ensureRoot(context, undefined);
  const rootKey = await store.keys.root();
  const caller: Caller = {
    accountId: 'root',
    keyId: rootKey?.id ?? null,
    operator: true,
    fullAccess: true,
    interface: 'rest-v2',
    requestId: 'request',
  };
  return {
    ...context,
    root: caller,
    account: async (name) => {
      const account: Account = {
        id: randomIds.resource(),
        name,
        sshKeys: [],
        createdAt: context.clock.now(),
      };
      const { record } = newKey(context, {
        accountId: account.id,
        name: 'first key',
        access: 'all',
        scopes: FULL_SCOPES,
        endpoints: null,
        expiresAt: null,
      });
      await store.accounts.insert(account, record, {
        at: context.clock.now(),
        accountId: account.id,
        keyId: null,
        interface: 'system',
        requestId: 'request',
        action: 'create',
        resource: 'account',
        resourceId: account.id,
        changes: [],
      });
      return { ...caller, accountId: account.id, keyId: record.id, operator: false };
    },
    close: async () => {
      await store.close();
      await database.drop();
    },
  };
}
