import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import type * as Pg from 'pg';
import type { Pool, PoolClient, QueryResult } from 'pg';
import { BerthError } from '../../support/errors.ts';
import type { Database } from '../database.ts';
import { render } from '../sql.ts';
import { NO_OBSERVER } from '../store-observer.ts';
import type { StoreObserver } from '../store-observer.ts';
import type { StatementResult, Row, Statement, Steps } from '../sql.ts';
import { AdvisoryLocks } from './advisory-locks.ts';
import { postgresJobStore } from './job-store-driver.ts';
import { LeaseElection } from '../lease-election.ts';
import { ShardElection } from '../shard-election.ts';
import { leaderLeaseName } from '../tables/worker-shards.table.ts';
import { postgresLeaseTable } from './lease-table.ts';
import { postgresShardLeaseTable } from './shard-lease-table.ts';
import { IDLE_SESSION_TIMEOUT, SESSION_OPTIONS } from './session-options.ts';
import { copyPostgres } from './copy-database.ts';
import { connectError, poolerError } from './connect-error.ts';
import { notifyWakeupBus } from './notify-wakeup-bus.ts';
import { withClient, inTransaction, withTransactionRetries, translateErrors } from './transactions.ts';

const MIN_SERVER_VERSION = 140000;

/**
 * Settings of the connections that submit, take and change jobs, and run nothing else. Those few statements
 * are prepared, and planned once: to plan one takes as long as to run it for one job. They find all rows by a
 * key, so a plan that reads whole tables is never right, however small the tables were when it was made.
 */
export const QUEUE_PLANNER_OPTIONS = [
  '-c plan_cache_mode=force_generic_plan',
  '-c enable_seqscan=off',
  '-c enable_hashjoin=off',
  '-c enable_mergejoin=off',
  '-c jit=off',
].join(' ');
/**
 * A connection may go silent: the machine behind it lost power, or a firewall forgot it. A statement of the
 * queue, on which all others of its kind wait, is given up after this time, any other after a time that no
 * statement takes.
 */
const QUEUE_POOL_TIMEOUT_MS = 30_000;
const QUERY_TIMEOUT_MS = 10 * 60_000;
/** Also for a connection that is free. */
const CONNECT_TIMEOUT_MS = 30_000;
/**
 * Submissions and changes have one commit on its way each, and takes one for each endpoint. Beyond this many
 * connections they wait for each other.
 */
const MAX_QUEUE_CONNECTIONS = 4;

const WRITE_PROBE = `insert into settings (name, value) values ('write probe', '1')
  on conflict (name) do update set value = excluded.value`;

export interface PostgresOptions {
  url: string;
  poolSize: number;
  onError(error: Error): void;
  observer?: StoreObserver;
}

export async function openPostgres({
  url: given,
  poolSize,
  onError,
  observer = NO_OBSERVER,
}: PostgresOptions): Promise<Database> {
  const { url, givenOptions } = takeOptions(given);
  // Loaded here and not above: a server on SQLite starts without it.
  const pg = createRequire(import.meta.url)('pg') as typeof Pg;
  let closing = false;
  const sockets = new Set<Socket>();
  const openSocket = (): Socket => {
    const socket = new Socket();
    sockets.add(socket);
    return socket.once('close', () => sockets.delete(socket));
  };
  const open = (max: number, options: string, queryTimeout: number): Pool => {
    const opened = new pg.Pool({
      connectionString: url,
      max,
      application_name: 'berth',
      options: `${givenOptions} ${options}`,
      stream: openSocket,
      types,
      keepAlive: true,
      query_timeout: queryTimeout,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    });
    opened.on('error', (error) => {
      // A connection may still be on its way out when its pool says that it has ended.
      if (!closing) onError(error);
    });
    // The pool handles errors of idle connections only. One that breaks while in use fails its query; the error
    // event that comes with it must not end the process.
    opened.on('connect', (client) => void client.on('error', () => undefined));
    return opened;
  };
  const types = {
    getTypeParser: (oid: number, format?: 'text' | 'binary') =>
      oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format ?? 'text'),
  };
  const queueConnections = Math.max(1, Math.min(MAX_QUEUE_CONNECTIONS, Math.floor(poolSize / 2)));
  const pool = open(Math.max(1, poolSize - queueConnections), SESSION_OPTIONS, QUERY_TIMEOUT_MS);
  const queuePool = open(
    queueConnections,
    `${QUEUE_PLANNER_OPTIONS} ${SESSION_OPTIONS}`,
    QUEUE_POOL_TIMEOUT_MS,
  );
  await checkVersion(pool).catch(async (error: unknown) => {
    closing = true;
    await Promise.all([pool.end(), queuePool.end()]);
    // It reads the address as the pool does, with what the environment adds.
    throw error instanceof BerthError ? error : connectError(error, new pg.Client({ connectionString: url }));
  });
  const server = randomUUID().slice(0, 8);
  const locks = new AdvisoryLocks({ url: given });
  // Queries that cannot be answered any more fail now.
  const onCutOff = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    dialect: 'postgres',
    server,
    read: (steps) => withClient(pool, (client) => run(client, steps)),
    // Other servers and other programs use it too: only a write shows whether it takes writes.
    checkWritable: async () => {
      await withClient(pool, (client) => translateErrors(client.query(WRITE_PROBE)));
    },
    write: async (steps) => {
      const start = performance.now();
      const result = await withTransactionRetries(() => inTransaction(pool, (client) => run(client, steps)));
      observer.committed(1, performance.now() - start);
      return result;
    },
    jobs: () => postgresJobStore(pool, queuePool, server, observer),
    wakeups: () => notifyWakeupBus({ url: given, server, pool, onError }),
    copyTo: (folder) => copyPostgres(pool, folder),
    exclusively: (name, work) => locks.run(name, work),
    leaderElection: (onResigned, shards) =>
      new LeaseElection({
        server,
        connect: (onDisconnected) => postgresLeaseTable(given, onDisconnected, leaderLeaseName(shards)),
        onError,
        onCutOff,
        onResigned,
      }),
    shardElection: (shards, onReleased) =>
      new ShardElection({
        shards,
        server,
        connect: (onDisconnected) => postgresShardLeaseTable(given, shards, onDisconnected),
        onError,
        onReleased,
      }),
    close: async () => {
      closing = true;
      await Promise.all([pool.end(), queuePool.end(), locks.close()]);
    },
  };
}

/** `options` in the address would replace those of the pools: they are taken out and come first. */
function takeOptions(url: string): { url: string; givenOptions: string } {
  const parsed = new URL(url);
  const givenOptions = parsed.searchParams.get('options');
  if (givenOptions === null) return { url, givenOptions: '' };
  parsed.searchParams.delete('options');
  return { url: parsed.href, givenOptions };
}

async function checkVersion(pool: Pool): Promise<void> {
  const answer = await pool.query<{ version: string; timeout: string }>(
    `select current_setting('server_version_num') as version,
      current_setting('idle_session_timeout', true) as timeout`,
  );
  const version = Number(answer.rows[0]?.version);
  if (version < MIN_SERVER_VERSION) {
    throw new BerthError(
      'unavailable',
      `PostgreSQL 14 or newer is needed; this server is ${Math.floor(version / 10000)}`,
    );
  }
  // A connection pooler that ignores session settings answers as if nothing had been set.
  if (answer.rows[0]?.timeout !== IDLE_SESSION_TIMEOUT) throw poolerError();
}

async function run<T>(client: PoolClient, steps: () => Steps<T>): Promise<T> {
  const work = steps();
  let step = work.next();
  while (step.done !== true) step = work.next(await execute(client, step.value));
  return step.value;
}

async function execute(client: PoolClient, statement: Statement): Promise<StatementResult> {
  const answer: QueryResult<Row> = await translateErrors(
    client.query<Row>(render(statement, 'postgres'), [...statement.values]),
  );
  return { rows: answer.rows, changes: answer.rowCount ?? 0 };
}
