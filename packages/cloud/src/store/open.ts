import { join } from 'node:path';
import type { Sealer } from '../support/crypto.ts';
import { BerthError } from '../support/errors.ts';
import type { Database } from './database.ts';
import type { UsageRules } from './ledger.ts';
import { migrate } from './migrate.ts';
import { openPostgres } from './postgres/database.ts';
import { changes, row, sql } from './sql.ts';
import { openSqlite } from './sqlite/database.ts';
import type { Store } from './store.ts';
import { accountTable } from './tables/accounts.ts';
import { auditTable } from './tables/audit.ts';
import { clusterTable } from './tables/clusters.ts';
import { fleetTable } from './tables/fleet.ts';
import { endpointTable } from './tables/endpoints.ts';
import { keyTable } from './tables/keys.ts';
import { ledgerTable } from './tables/ledger.ts';
import { flashTables } from './tables/flash.ts';
import { loginRequestTable } from './tables/login-requests.ts';
import { modelTable } from './tables/models.ts';
import { podTable } from './tables/pods.ts';
import { delegationTable, registryTable } from './tables/registries.ts';
import { s3KeyTable } from './tables/s3-keys.ts';
import { secretTable } from './tables/secrets.ts';
import { templateTable } from './tables/templates.ts';
import { volumeTable } from './tables/volumes.ts';
import { noWakeups } from './wakeups.ts';
import type { Wakeups } from './wakeups.ts';

export interface StoreOptions {
  /** A postgres URL; empty is SQLite in the data directory. */
  database: string;
  data: string;
  poolSize: number;
  sealer: Sealer;
  /** What is written of pods, workers and volumes is usage too; without these nothing is counted. */
  usage?: UsageRules;
  onError(error: Error): void;
}

/** Opens the database that the configuration names, brings its schema up to date, and hands out the store over it. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const database = await openDatabase(options);
  try {
    await migrate(database);
    await checkMasterKey(database, options.sealer);
  } catch (error) {
    await database.close();
    throw error;
  }
  return storeOver(database, options.sealer, await database.wakeups(), options.usage);
}

export async function openDatabase({
  database,
  data,
  poolSize,
  onError,
}: Omit<StoreOptions, 'sealer' | 'usage'>): Promise<Database> {
  return database === ''
    ? openSqlite(join(data, 'berth.db'))
    : openPostgres({ url: database, poolSize, onError });
}

export function storeOver(
  database: Database,
  sealer: Sealer,
  wakeups: Wakeups = noWakeups,
  usage?: UsageRules,
): Store {
  const leadership = database.leadership();
  return {
    accounts: accountTable(database),
    keys: keyTable(database),
    s3Keys: s3KeyTable(database, sealer),
    templates: templateTable(database, sealer),
    endpoints: endpointTable(database, sealer),
    pods: podTable(database, sealer, usage),
    clusters: clusterTable(database, sealer, usage),
    volumes: volumeTable(database, usage),
    registries: registryTable(database, sealer),
    delegations: delegationTable(database),
    secrets: secretTable(database, sealer),
    flash: flashTables(database),
    models: modelTable(database),
    loginRequests: loginRequestTable(database, sealer),
    audit: auditTable(database),
    jobs: database.jobs(),
    fleet: fleetTable(database, sealer, usage),
    ledger: ledgerTable(database, usage),
    wakeups,
    leadership,
    ping: () =>
      database.read(function* () {
        yield sql`select 1`;
      }),
    close: async () => {
      await Promise.all([wakeups.close(), leadership.close()]);
      await database.close();
    },
  };
}

/**
 * A server with another master key could read nothing that is sealed, and would seal what
 * the others cannot read. A known text, sealed at the first start, tells before any harm.
 */
async function checkMasterKey(database: Database, sealer: Sealer): Promise<void> {
  const context = 'the master key check';
  const kept = await database.write(function* () {
    yield* changes(
      sql`insert into settings (name, value) values ('master key check', ${sealer.seal('berth', context)}) on conflict (name) do nothing`,
    );
    return yield* row<{ value: string }>(sql`select value from settings where name = 'master key check'`);
  });
  try {
    sealer.open(kept?.value ?? '', context);
  } catch (cause) {
    throw new BerthError(
      'unavailable',
      'this database was sealed with another master key; set BERTH_MASTER_KEY, or copy master.key from the data directory of the server that made it',
      { cause },
    );
  }
}
