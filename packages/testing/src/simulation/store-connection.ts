import { AsyncLocalStorage } from 'node:async_hooks';
import type { Store } from '../../../cloud/src/store/store.ts';
import { BerthError } from '../../../cloud/src/support/errors.ts';
import type { SeededRandom } from '../safety/seeded-random.ts';
import type { SimulatedProcess, VirtualTime } from './virtual-time.ts';

/** What can go wrong between a server and its database. */
export interface StoreFaults {
  /** The database cannot be reached before this time. */
  downUntil: number;
  /** The share of calls whose connection breaks, before or after the commit. */
  failureRate: number;
  /** The share of calls that are executed late, perhaps when their server has long given them up. */
  lateRate: number;
}

export interface StoreConnectionDeps {
  time: VirtualTime;
  random: SeededRandom;
  process: SimulatedProcess;
  faults: StoreFaults;
  /** The network between this server and the database is cut. */
  isCutOff(): boolean;
  /** In the process of the server, as SQLite is; else over a network, as PostgreSQL is. */
  isLocal: boolean;
  /** How the server calls itself where it writes as the leader. */
  leader?: string;
  /** When the last of that is executed. */
  lastAt?: number;
  /** A call without an answer is given up after this time. */
  timeout?: number;
  /** Called when a call that may change jobs or workers is executed, and when it is done. */
  onWrite(): void;
  onDone(): void;
}

type Method = (...args: unknown[]) => Promise<unknown>;
/** What the simulated servers use. */
export type UsedStore = Pick<
  Store,
  'jobs' | 'workers' | 'pods' | 'ledger' | 'clock' | 'leading' | 'workerShards'
>;

const MAX_LATENCY_MS = 8;
/** Calls that change no job and create no worker. */
const LEAVES_JOBS =
  /^(?:find|list|count|queue|is[A-Z]|next|highest|databaseTime|workers$|renew|takeOver|release|leave|saveShared|saveHeartbeats|saveDelivery|updateDelivery|observe)/;
/** A server whose network is cut gives up a call after this time. */
const CUT_OFF_TIMEOUT_MS = 2_000;
/** How much later than its server meant a call may be executed. */
export const MAX_DELAY_MS = 10_000;

/** The server for which something is executed that only the leader may do. */
const leadingServer = new AsyncLocalStorage<string>();

export function writesAsLeader(): string | undefined {
  return leadingServer.getStore();
}

/**
 * What one server sees of the store. An answer waits while its server is frozen, and never comes after its
 * crash. Over a network, every call takes a while each way, and a connection that breaks leaves open whether
 * the call was executed.
 */
export function connectToStore(store: UsedStore, { leader, ...deps }: StoreConnectionDeps): UsedStore {
  const asLeader = { ...deps, ...(leader !== undefined && { leader }) };
  const { jobs, workers, pods, ledger, clock, leading, workerShards } = store;
  return {
    jobs: { ...connect(jobs, deps), sameTurnTakes: deps.isLocal && jobs.sameTurnTakes },
    workers: connect(workers, deps),
    pods: connect(pods, deps),
    ledger: connect(ledger, deps),
    clock: connect(clock, deps),
    leading: {
      workers: connect(leading.workers, asLeader),
      pods: connect(leading.pods, asLeader),
      clock: connect(leading.clock, asLeader),
    },
    ...(workerShards && {
      workerShards: {
        ...workerShards,
        // What is done for one shard stays in order, whatever is done for others.
        leading: workerShards.leading.map((shard) => ({
          ...shard,
          workers: connect(shard.workers, { ...asLeader }),
        })),
      },
    }),
  };
}

export function connect<T extends object>(part: T, deps: StoreConnectionDeps): T {
  const call = deps.isLocal ? localCall : remoteCall;
  const entries = Object.entries(part).map(([name, method]): [string, unknown] => [
    name,
    typeof method === 'function'
      ? (...args: unknown[]) => call(deps, name, () => (method as Method).apply(part, args))
      : method,
  ]);
  return Object.fromEntries(entries) as T;
}

/** The database works outside of the server's process: a crash does not stop what it has begun. */
function execute(
  { time, leader, onWrite, onDone }: StoreConnectionDeps,
  name: string,
  work: () => Promise<unknown>,
): Promise<unknown> {
  const executed = leader === undefined ? work : () => leadingServer.run(leader, work);
  if (LEAVES_JOBS.test(name)) return time.runIn(undefined, executed);
  onWrite();
  return time.runIn(undefined, executed).finally(onDone);
}

function localCall(deps: StoreConnectionDeps, name: string, work: () => Promise<unknown>): Promise<unknown> {
  const { time, process } = deps;
  if (process.hasCrashed) return new Promise(() => undefined);
  return new Promise((resolve, reject) => {
    /** At once, unless the server is frozen. */
    const answer = (settle: () => void): void => {
      if (process.hasCrashed) return;
      if (process.frozenUntil > time.now) time.after(0, process, settle);
      else settle();
    };
    execute(deps, name, work).then(
      (value) => answer(() => resolve(value)),
      (error: unknown) => answer(() => reject(error)),
    );
  });
}

function remoteCall(deps: StoreConnectionDeps, name: string, work: () => Promise<unknown>): Promise<unknown> {
  const { time, random, process, faults, timeout = Infinity } = deps;
  const latency = (): number => random.next() ** 3 * MAX_LATENCY_MS;
  const broken = (): BerthError => new BerthError('unavailable', 'the connection to the database broke');
  return new Promise((resolve, reject) => {
    if (process.hasCrashed) return;
    const refuse = (): void =>
      void time.after(deps.isCutOff() ? CUT_OFF_TIMEOUT_MS : latency(), process, () => reject(broken()));
    const delay = random.chance(faults.lateRate) ? random.next() * MAX_DELAY_MS : 0;
    if (delay > timeout) time.after(timeout, process, () => reject(broken()));
    time.after(inOrder(deps, latency() + delay), undefined, () => {
      if (faults.downUntil > time.now || deps.isCutOff()) return refuse();
      const fails = random.chance(faults.failureRate);
      if (fails && random.chance(0.5)) return refuse();
      execute(deps, name, work).then(
        (value) => {
          if (fails || deps.isCutOff()) return refuse();
          time.after(latency(), process, () => resolve(asSeenFromAfar(name, value)));
        },
        (error: unknown) => time.after(latency(), process, () => reject(error)),
      );
    });
  });
}

/**
 * What a server does as the leader stays in order: a worker that takes the place of another one is not
 * written before the end of that one.
 */
function inOrder(deps: StoreConnectionDeps, wait: number): number {
  const { time, leader } = deps;
  if (leader === undefined) return wait;
  deps.lastAt = Math.max(deps.lastAt ?? 0, time.now + wait);
  return deps.lastAt - time.now;
}

/** A take of the same turn comes too early for a submission that still travels. */
function asSeenFromAfar(name: string, value: unknown): unknown {
  return name === 'submit' ? { ...(value as object), seenByTakes: false } : value;
}
