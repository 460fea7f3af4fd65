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
  /** Called when a call is executed, and when it is done. */
  onCall(): void;
  onDone(): void;
}

type Method = (...args: unknown[]) => Promise<unknown>;
/** What the simulated servers use. */
export type UsedStore = Pick<Store, 'jobs' | 'workers' | 'pods' | 'ledger' | 'clock' | 'leading'>;

const MAX_LATENCY_MS = 8;
/** A server whose network is cut gives up a call after this time. */
const CUT_OFF_TIMEOUT_MS = 2_000;

/**
 * What one server sees of the store. An answer waits while its server is frozen, and never comes after its crash.
 * Over a network, every call takes a while each way, and a connection that breaks leaves open whether the call was
 * executed.
 */
export function connectToStore(store: UsedStore, deps: StoreConnectionDeps): UsedStore {
  const { jobs, workers, pods, ledger, clock, leading } = store;
  return {
    jobs: { ...connect(jobs, deps), sameTurnTakes: deps.isLocal && jobs.sameTurnTakes },
    workers: connect(workers, deps),
    pods: connect(pods, deps),
    ledger: connect(ledger, deps),
    clock: connect(clock, deps),
    leading: {
      workers: connect(leading.workers, deps),
      pods: connect(leading.pods, deps),
      clock: connect(leading.clock, deps),
    },
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
  { time, onCall, onDone }: StoreConnectionDeps,
  work: () => Promise<unknown>,
): Promise<unknown> {
  onCall();
  return time.runIn(undefined, work).finally(onDone);
}

function localCall(deps: StoreConnectionDeps, _name: string, work: () => Promise<unknown>): Promise<unknown> {
  const { time, process } = deps;
  if (process.hasCrashed) return new Promise(() => undefined);
  return new Promise((resolve, reject) => {
    /** At once, unless the server is frozen. */
    const answer = (settle: () => void): void => {
      if (process.hasCrashed) return;
      if (process.frozenUntil > time.now) time.after(0, process, settle);
      else settle();
    };
    execute(deps, work).then(
      (value) => answer(() => resolve(value)),
      (error: unknown) => answer(() => reject(error)),
    );
  });
}

function remoteCall(deps: StoreConnectionDeps, name: string, work: () => Promise<unknown>): Promise<unknown> {
  const { time, random, process, faults } = deps;
  const latency = (): number => random.next() ** 3 * MAX_LATENCY_MS;
  const broken = (): BerthError => new BerthError('unavailable', 'the connection to the database broke');
  return new Promise((resolve, reject) => {
    if (process.hasCrashed) return;
    const refuse = (): void =>
      void time.after(deps.isCutOff() ? CUT_OFF_TIMEOUT_MS : latency(), process, () => reject(broken()));
    time.after(latency(), undefined, () => {
      if (faults.downUntil > time.now || deps.isCutOff()) return refuse();
      const fails = random.chance(faults.failureRate);
      if (fails && random.chance(0.5)) return refuse();
      execute(deps, work).then(
        (value) => {
          if (fails || deps.isCutOff()) return refuse();
          time.after(latency(), process, () => resolve(asSeenFromAfar(name, value)));
        },
        (error: unknown) => time.after(latency(), process, () => reject(error)),
      );
    });
  });
}

/** A take of the same turn comes too early for a submission that still travels. */
function asSeenFromAfar(name: string, value: unknown): unknown {
  return name === 'submit' ? { ...(value as object), seenByTakes: false } : value;
}
