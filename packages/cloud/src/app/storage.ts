import { usageRules } from '../metering/usage-rules.ts';
import type { ResourceContext } from '../resources/resource-context.ts';
import { openStore } from '../store/open-store.ts';
import type { Store } from '../store/store.ts';
import type { StoreObserver } from '../store/store-observer.ts';
import type { Config } from '../support/config/config.ts';
import { Sealer } from '../support/crypto.ts';
import { SteadyClock } from '../support/steady-clock.ts';
import { loadMasterKey } from '../support/master-key.ts';
import type { AppContext } from './app-context.ts';
import { createClockSync } from './run-clock-sync.ts';
import type { ClockSync } from './clock-sync.ts';
import { initializeRootKey } from './root-key.ts';
import type { RootKey } from './root-key.ts';

/** The database, and the keys that protect it. */
export interface Storage {
  store: Store;
  context: ResourceContext;
  masterKey: Buffer;
  rootKey: RootKey;
  /** Undefined where a test moves the clock. */
  clockSync: ClockSync | undefined;
}

export async function openStorage(
  { config, log, clock, ids, events, disk }: AppContext,
  observer: StoreObserver,
): Promise<Storage> {
  const givenRootKey = config.rootKey || undefined;
  const masterKey = loadMasterKey(config.data, givenMasterKey(config), givenRootKey);
  const store = await openStore({
    database: config.database,
    data: config.data,
    poolSize: config.databasePool,
    workerShards: config.workerShards,
    sealer: new Sealer(masterKey),
    usage: usageRules(config.prices),
    onFull: (forJobs, bytes) => disk.onFull(forJobs, bytes),
    observer,
    onError: (error) => log.warn({ err: error }, 'a database connection failed'),
  });
  const clockSync =
    clock instanceof SteadyClock
      ? createClockSync({ clock, store, log }, config.database, config.data)
      : undefined;
  await clockSync?.restore();
  const context: ResourceContext = { store, clock, ids, events, disk };
  const rootKey = await initializeRootKey(context, config.data, givenRootKey);
  return { store, context, masterKey, rootKey, clockSync };
}

function givenMasterKey({ masterKey }: Config): Buffer | undefined {
  return masterKey === '' ? undefined : Buffer.from(masterKey, 'hex');
}
