import { join } from 'node:path';
import type { Sealer } from '../support/crypto.ts';
import { BerthError } from '../support/errors.ts';
import type { Database } from './database.ts';
import type { UsageRules } from './ledger-store.ts';
import { fencedDatabase } from './fenced-database.ts';
import { checkSchema, migrate } from './migrations/migrate.ts';
import { execute, row, sql } from './sql.ts';
import type { ShardElection } from './shard-election.ts';
import type { Store, WorkerShardStores } from './store.ts';
import type { StoreObserver } from './store-observer.ts';
import { acmeTable } from './tables/acme.table.ts';
import { accountTable } from './tables/accounts.table.ts';
import { auditLogTable } from './tables/audit-log.table.ts';
import { backupTable } from './tables/backup.table.ts';
import { clockTable } from './tables/clock.table.ts';
import { clusterTable } from './tables/clusters.table.ts';
import { workersTable } from './tables/workers.table.ts';
import { endpointTable } from './tables/endpoints.table.ts';
import { apiKeyTable } from './tables/api-keys.table.ts';
import { historyTable } from './tables/history.table.ts';
import { overviewTable } from './tables/overview.table.ts';
import { ledgerTable } from './tables/ledger.table.ts';
import { flashTables } from './tables/flash.table.ts';
import { loginRequestTable } from './tables/login-requests.table.ts';
import { modelTable } from './tables/models.table.ts';
import { podTable } from './tables/pods.table.ts';
import { registryDelegationTable, registryTable } from './tables/registries.table.ts';
import { s3KeyTable } from './tables/s3-keys.table.ts';
import { imageArchiveTable } from './tables/image-archives.table.ts';
import { sharedFileTable } from './tables/shared-files.table.ts';
import { sessionTable } from './tables/sessions.table.ts';
import { serverTable } from './tables/servers.table.ts';
import { secretTable } from './tables/secrets.table.ts';
import { checkWorkerShards, countShards, useWorkerShards } from './tables/worker-shards.table.ts';
import { templateTable } from './tables/templates.table.ts';
import { networkVolumeTable } from './tables/network-volumes.table.ts';
import { noopWakeupBus } from './wakeup-bus.ts';
import type { WakeupBus } from './wakeup-bus.ts';

export interface StoreOptions {
  /** A postgres URL; empty is SQLite in the data directory. */
  database: string;
  data: string;
  poolSize: number;
  sealer: Sealer;
  /** What is written of pods, workers and volumes is usage too; without these nothing is counted. */
  usage?: UsageRules;
  onError(error: Error): void;
  /** The disk of the data directory is full. Returns true after space was freed. */
  onFull?(forJobs?: boolean, bytes?: number): boolean;
  observer?: StoreObserver;
  /** Into how many shards the workers of endpoints are divided. Default: 1. */
  workerShards?: number;
}

/**
 * Opens the database that the configuration names, brings its schema up to date, and hands out the store over
 * it.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const database = await openDatabase(options);
  try {
    await migrate(database);
    await checkMasterKey(database, options.sealer);
    if (database.dialect === 'postgres') await useWorkerShards(database, options.workerShards ?? 1);
  } catch (error) {
    await database.close();
    throw error;
  }
  return createStore(database, options.sealer, await database.wakeups(), options.usage, options.workerShards);
}

export async function openDatabase({
  database,
  data,
  poolSize,
  onError,
  onFull,
  observer,
}: Omit<StoreOptions, 'sealer' | 'usage' | 'workerShards'>): Promise<Database> {
  // Only the driver in use is loaded: each is 30 files.
  if (database === '') {
    const { openSqlite } = await import('./sqlite/open-database.ts');
    return openSqlite(join(data, 'berth.db'), { ...(onFull && { onFull }), ...(observer && { observer }) });
  }
  const { openPostgres } = await import('./postgres/open-database.ts');
  return openPostgres({ url: database, poolSize, onError, ...(observer && { observer }) });
}

export function createStore(
  database: Database,
  sealer: Sealer,
  wakeups: WakeupBus = noopWakeupBus,
  usage?: UsageRules,
  shards = 1,
): Store {
  const onFree = (): void => wakeups.publish({ kind: 'resigned' });
  const leadership = database.leaderElection(onFree, shards);
  const shardElection = shards > 1 ? database.shardElection?.(shards, onFree) : undefined;
  wakeups.subscribe(({ kind }) => {
    if (kind !== 'resigned') return;
    leadership.wake();
    shardElection?.wake();
  });
  const fenced = fencedDatabase(database, leadership);
  return {
    accounts: accountTable(database),
    keys: apiKeyTable(database),
    s3Keys: s3KeyTable(database, sealer),
    sessions: sessionTable(database),
    imageArchives: imageArchiveTable(database),
    sharedFiles: sharedFileTable(database),
    templates: templateTable(database, sealer),
    endpoints: endpointTable(database, sealer),
    pods: podTable(database, sealer, usage),
    clusters: clusterTable(database, sealer, usage),
    volumes: networkVolumeTable(database, usage),
    registries: registryTable(database, sealer),
    delegations: registryDelegationTable(database),
    secrets: secretTable(database, sealer),
    flash: flashTables(database),
    models: modelTable(database),
    loginRequests: loginRequestTable(database, sealer),
    audit: auditLogTable(database),
    jobs: database.jobs(),
    workers: workersTable(database, sealer, usage),
    servers: serverTable(database, fenced),
    server: database.server,
    exclusively: (name, work) => database.exclusively(name, work),
    leading: {
      workers: workersTable(fenced, sealer, usage),
      pods: podTable(fenced, sealer, usage),
      clock: clockTable(fenced),
    },
    ...(shardElection && { workerShards: createShards(database, shardElection, sealer, usage) }),
    ledger: ledgerTable(database, usage),
    history: historyTable(database),
    overview: overviewTable(database),
    clock: clockTable(database),
    backup: backupTable(database),
    acme: acmeTable(database, sealer),
    wakeups,
    leaderElection: leadership,
    ping: async () => {
      await checkSchema(database);
      if (database.dialect === 'postgres') await checkWorkerShards(database, shards);
      await database.checkWritable();
    },
    close: async () => {
      await Promise.all([leadership.close(), shardElection?.close()]);
      await wakeups.close();
      await database.close();
    },
  };
}

function createShards(
  database: Database,
  election: ShardElection,
  sealer: Sealer,
  usage: UsageRules | undefined,
): WorkerShardStores {
  const leading = Array.from({ length: election.shards }, (_, shard) => {
    const fenced = fencedDatabase(database, { fence: () => election.fence(shard) });
    return { workers: workersTable(fenced, sealer, usage), servers: serverTable(database, fenced) };
  });
  return { election, leading, countByServer: () => countShards(database) };
}

/**
 * A server with another master key could read no sealed value, and would seal values that the others cannot
 * read. A known text, sealed at the first start, reveals a wrong key before any harm.
 */
async function checkMasterKey(database: Database, sealer: Sealer): Promise<void> {
  const context = 'the master key check';
  const kept = await database.write(function* () {
    yield* execute(
      sql`insert into settings (name, value) values ('master key check', ${sealer.seal('berth', context)})
        on conflict (name) do nothing`,
    );
    return yield* row<{ value: string }>(sql`select value from settings where name = 'master key check'`);
  });
  try {
    sealer.open(kept?.value ?? '', context);
  } catch (cause) {
    throw new BerthError(
      'unavailable',
      'this database was sealed with another master key; set BERTH_MASTER_KEY, or copy master.key from ' +
        'the data directory of the server that made it',
      { cause },
    );
  }
}
