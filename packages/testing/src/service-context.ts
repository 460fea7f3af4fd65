import { ACCOUNT_DEFAULTS } from '../../cloud/src/domain/records.ts';
import type { Caller } from '../../cloud/src/domain/caller.ts';
import { ensureRootAccount } from '../../cloud/src/resources/accounts/root-account.ts';
import type { ResourceContext } from '../../cloud/src/resources/resource-context.ts';
import type { Account } from '../../cloud/src/domain/records.ts';
import { createApiKey } from '../../cloud/src/resources/keys/new-api-key.ts';
import { FULL_SCOPES } from '../../cloud/src/resources/keys/new-api-key.ts';
import { openStore } from '../../cloud/src/store/open-store.ts';
import { ManualClock } from '../../cloud/src/support/clock.ts';
import { Sealer } from '../../cloud/src/support/crypto.ts';
import { randomIds } from '../../cloud/src/support/ids.ts';
import { createTestDatabase } from './test-database.ts';
import { EventBus } from '../../cloud/src/support/event-bus.ts';

/** What the rules work with, over a real SQLite store and a clock that the test sets. */
export interface ServiceContext extends ResourceContext {
  clock: ManualClock;
  root: Caller;
  /** A new account, and the caller that its first key makes. */
  account(name: string): Promise<Caller>;
  close(): Promise<void>;
}

export async function createServiceContext(): Promise<ServiceContext> {
  const database = await createTestDatabase('sqlite');
  const store = await openStore({
    database: database.url,
    data: database.data,
    poolSize: 1,
    sealer: new Sealer(Buffer.alloc(32, 1)),
    onError: (error) => {
      throw error;
    },
  });
  const context: ResourceContext & { clock: ManualClock } = {
    store,
    clock: new ManualClock(),
    ids: randomIds,
    events: new EventBus(),
  };
  await ensureRootAccount(context, undefined);
  const rootKey = await store.keys.findRoot();
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
        ...ACCOUNT_DEFAULTS,
        createdAt: context.clock.now(),
      };
      const { record } = createApiKey(context, {
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
