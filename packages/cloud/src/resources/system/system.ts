import { arch, hostname, release, totalmem } from 'node:os';
import type { Caller } from '../../domain/caller.ts';
import type { DataCenterDefinition } from '../../domain/catalog/data-centers.ts';
import type { AccountIsolation, Capacity } from '../../domain/placement/engine-capacity.ts';
import type { QueueDepth } from '../../store/job-store.ts';
import type { ServerView } from '../../store/server-store.ts';
import type { Store } from '../../store/store.ts';
import { cacheWithTtl } from '../../support/cache-with-ttl.ts';
import type { CheckResult } from '../../support/check-result.ts';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { BackupSchedule } from '../backups/backup-schedule.ts';
import type { Catalog } from '../catalog/catalog.ts';

/** The checks start programs and take more than a second. */
const CHECKS_LIFETIME_MS = 60_000;
const MAX_LISTED_QUEUES = 20;

export interface SystemDeps {
  store: Pick<Store, 'accounts' | 'jobs' | 'pods' | 'workers' | 'servers' | 'workerShards'>;
  catalog: Catalog;
  backupSchedule: Pick<BackupSchedule, 'status'>;
  clock: Clock;
  version: string;
  database: 'sqlite' | 'postgres';
  isLeading(): boolean;
  /** What `berth doctor` finds on this machine. */
  runChecks(): Promise<CheckResult[]>;
}

export interface DataCenterState {
  dataCenter: DataCenterDefinition;
  isolation: AccountIsolation | null;
  capacity: Capacity;
  pods: number;
  workers: number;
}

export interface SystemState {
  /** The time of the answer. */
  now: number;
  version: string;
  database: 'sqlite' | 'postgres';
  /** The server that answers. */
  server: {
    host: string;
    pid: number;
    startedAt: number;
    leading: boolean;
    node: string;
    platform: string;
    memoryBytes: number;
    machineMemoryBytes: number;
  };
  /** All servers on the database seen in the last hour; none on SQLite. */
  servers: (ServerView & { workerShards: number })[];
  dataCenters: DataCenterState[];
  counts: { accounts: number; activePods: number; liveWorkers: number };
  queue: { queued: number; oldestQueuedAt: number | null; longest: QueueDepth[] };
  checks: { ranAt: number; results: CheckResult[] };
  backups: { target: string; lastAt: number | null; error: string | null };
}

/** The whole installation at a glance, for its operator. */
export class System {
  readonly #deps: SystemDeps;
  readonly #startedAt: number;
  readonly #checks: () => Promise<SystemState['checks']>;

  constructor(deps: SystemDeps) {
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
    this.#checks = cacheWithTtl(
      async () => ({ results: await deps.runChecks(), ranAt: deps.clock.now() }),
      CHECKS_LIFETIME_MS,
      deps.clock,
    );
  }

  async describe(caller: Caller): Promise<SystemState> {
    if (!caller.operator)
      throw new BerthError('forbidden', 'only a key with full access of the root account may see the system');
    const { store, version, database, backupSchedule } = this.#deps;
    const [accounts, activePods, liveWorkers, checks, backup, queue, servers, shards] = await Promise.all([
      store.accounts.list(),
      store.pods.listActive(),
      store.workers.listLiveWorkers(),
      this.#checks(),
      backupSchedule.status(caller),
      this.#queue(),
      store.servers.list(),
      store.workerShards?.countByServer(),
    ]);
    return {
      now: this.#deps.clock.now(),
      version,
      database,
      server: this.#server(),
      servers: servers.map((server) => ({
        ...server,
        // Without shards, the leader manages all workers: one shard.
        workerShards: shards === undefined ? Number(server.isLeader) : (shards.get(server.id) ?? 0),
      })),
      dataCenters: await this.#dataCenters(activePods, liveWorkers),
      counts: { accounts: accounts.length, activePods: activePods.length, liveWorkers: liveWorkers.length },
      queue,
      checks,
      backups: {
        target: backup.target,
        lastAt: backup.last?.at ?? null,
        error: backup.last?.error ?? null,
      },
    };
  }

  #server(): SystemState['server'] {
    return {
      host: hostname(),
      pid: process.pid,
      startedAt: this.#startedAt,
      leading: this.#deps.isLeading(),
      node: process.versions.node,
      platform: `${process.platform} ${release()} ${arch()}`,
      memoryBytes: process.memoryUsage.rss(),
      machineMemoryBytes: totalmem(),
    };
  }

  async #queue(): Promise<SystemState['queue']> {
    const { jobs } = this.#deps.store;
    const [queued, longest] = await Promise.all([jobs.queuedJobs(), jobs.queueDepths(MAX_LISTED_QUEUES)]);
    const waits = longest.flatMap(({ oldestQueuedAt }) => oldestQueuedAt ?? []);
    return { queued, longest, oldestQueuedAt: waits.length === 0 ? null : Math.min(...waits) };
  }

  #dataCenters(
    pods: readonly { dataCenterId: string }[],
    workers: readonly { dataCenterId: string }[],
  ): Promise<DataCenterState[]> {
    const { catalog } = this.#deps;
    const countIn = (list: readonly { dataCenterId: string }[], id: string): number =>
      list.filter(({ dataCenterId }) => dataCenterId === id).length;
    return Promise.all(
      catalog.dataCenters().map(async (dataCenter) => {
        const { id } = dataCenter;
        const [capacity, isolation] = await Promise.all([catalog.capacity(id), catalog.isolation(id)]);
        if (capacity === undefined) throw new BerthError('unavailable', `data center ${id} was disconnected`);
        return {
          dataCenter,
          capacity,
          isolation: isolation ?? null,
          pods: countIn(pods, id),
          workers: countIn(workers, id),
        };
      }),
    );
  }
}
