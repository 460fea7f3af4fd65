import { MachineClockKeeper } from '../../../cloud/src/app/machine-clock-keeper.ts';
import type { SavedTimeDeps } from '../../../cloud/src/app/saved-time.ts';
import { runClockKeeper } from '../../../cloud/src/app/run-clock-keeper.ts';
import { SharedClockKeeper } from '../../../cloud/src/app/shared-clock-keeper.ts';
import { createWorkerReconciler } from '../../../cloud/src/compute/workers/worker-policy.ts';
import type { CloudEventBus } from '../../../cloud/src/domain/events.ts';
import type { Endpoint } from '../../../cloud/src/domain/records.ts';
import { JobQueue } from '../../../cloud/src/queue/job-queue.ts';
import { JobReaperLoop } from '../../../cloud/src/queue/job-reaper-loop.ts';
import { deliveryOf } from '../../../cloud/src/queue/webhooks/webhook-delivery.ts';
import { singleServerElection } from '../../../cloud/src/store/leader-election.ts';
import type { SharedTime } from '../../../cloud/src/store/clock-store.ts';
import type { Store } from '../../../cloud/src/store/store.ts';
import type { Wakeup, WakeupBus } from '../../../cloud/src/store/wakeup-bus.ts';
import { EventBus } from '../../../cloud/src/support/event-bus.ts';
import type { Ids } from '../../../cloud/src/support/ids.ts';
import type { Log } from '../../../cloud/src/support/log.ts';
import { SteadyClock } from '../../../cloud/src/support/steady-clock.ts';
import type { SeededRandom } from '../safety/seeded-random.ts';
import type { SimulatedElection } from './simulated-election.ts';
import type { SimulatedEngine } from './simulated-engine.ts';
import type { Reachable } from './simulated-network.ts';
import type { SimulatedWakeups } from './simulated-wakeups.ts';
import { connectToStore } from './store-connection.ts';
import type { StoreFaults } from './store-connection.ts';
import type { SimulatedProcess, VirtualTime } from './virtual-time.ts';

export const DATA_CENTER = 'SIM-1';
/** Twice a second, as in the server, would be half of all steps of a run. */
const SWEEP_INTERVAL_MS = 2_000;

/** What all servers of a run share. */
export interface SimulatedWorld {
  time: VirtualTime;
  random: SeededRandom;
  store: Store;
  storeFaults: StoreFaults;
  /** One server with SQLite; else several, with PostgreSQL. */
  isLocal: boolean;
  engine: SimulatedEngine;
  election: SimulatedElection;
  wakeups: SimulatedWakeups;
  endpoints: ReadonlyMap<string, Endpoint>;
  /** How much the clock of the database is ahead, and what the leading server wrote about it. */
  databaseClock: { ahead: number; shared: SharedTime | undefined };
  ids: Ids;
  log(server: string): Log;
  /** A call of the store is executed, or done. */
  onStoreCall(): void;
  onStoreCallDone(): void;
}

/** The machine of a server. Its clock goes on while the server is down. */
interface Machine {
  /** How much its clock is ahead of the true time. */
  ahead: number;
  /** What the server keeps of its time, in a file. */
  savedClock: string | undefined;
}

interface Running {
  process: SimulatedProcess;
  clock: SteadyClock;
  queue: JobQueue;
  close(): Promise<void>;
}

/** One server, with the real parts inside. It can crash, freeze, stop and start again. */
export class SimulatedServer implements Reachable {
  readonly name: string;
  readonly machine: Machine = { ahead: 0, savedClock: undefined };
  readonly #world: SimulatedWorld;
  readonly #downListeners = new Set<() => void>();
  #process: SimulatedProcess | undefined;
  #running: Running | undefined;

  constructor(world: SimulatedWorld, name: string) {
    this.#world = world;
    this.name = name;
  }

  /** Undefined while it is down or starts. */
  get process(): SimulatedProcess | undefined {
    return this.#running?.process;
  }

  get queue(): JobQueue | undefined {
    return this.#running?.queue;
  }

  get clock(): SteadyClock | undefined {
    return this.#running?.clock;
  }

  get isDown(): boolean {
    return this.#process === undefined;
  }

  onDown(listener: () => void): () => void {
    this.#downListeners.add(listener);
    return () => this.#downListeners.delete(listener);
  }

  start(): void {
    if (this.#process !== undefined) return;
    const process: SimulatedProcess = { frozenUntil: 0, hasCrashed: false };
    this.#process = process;
    this.#world.time.runIn(process, () => {
      this.#compose(process).then(
        (running) => {
          if (this.#process === process) this.#running = running;
        },
        () => {
          // The database did not answer: a supervisor starts the server again.
          if (this.#process !== process) return;
          this.#process = undefined;
          process.hasCrashed = true;
          this.#world.time.after(1_000, undefined, () => this.start());
        },
      );
    });
  }

  crash(): void {
    const process = this.#process;
    const running = this.#running;
    if (process === undefined) return;
    process.hasCrashed = true;
    this.#process = undefined;
    this.#running = undefined;
    this.#world.wakeups.leave(process);
    this.#world.election.onSilent(process);
    // Only memory is left of it; this ends what would keep the simulation busy.
    if (running !== undefined) void this.#world.time.runIn(process, () => running.close());
    this.#tellDown();
  }

  /** Everything in it stands still for a while, and then goes on. */
  freeze(milliseconds: number): void {
    if (this.#process === undefined) return;
    this.#process.frozenUntil = this.#world.time.now + milliseconds;
    this.#world.election.onSilent(this.#process);
  }

  /** In order, as on SIGTERM. */
  async stop(): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    this.#running = undefined;
    await this.#world.time.runIn(running.process, () => running.close());
    if (this.#process !== running.process) return;
    this.#process = undefined;
    running.process.hasCrashed = true;
    this.#world.wakeups.leave(running.process);
    this.#tellDown();
  }

  #tellDown(): void {
    for (const listener of [...this.#downListeners]) listener();
  }

  async #compose(process: SimulatedProcess): Promise<Running> {
    const { time, random, storeFaults, isLocal, engine, endpoints, ids, onStoreCall, onStoreCallDone } =
      this.#world;
    const log = this.#world.log(this.name);
    const clock = new SteadyClock({
      now: () => Math.floor(time.timeOfDay + this.machine.ahead),
      monotonic: () => time.now,
    });
    const connected = connectToStore(this.#world.store, {
      time,
      random,
      process,
      faults: storeFaults,
      isLocal,
      onCall: onStoreCall,
      onDone: onStoreCallDone,
    });
    const store = isLocal ? connected : { ...connected, clock: this.#databaseClock(connected) };
    const keeper = isLocal
      ? new MachineClockKeeper({ clock, store, log, ...this.#machineClock() })
      : new SharedClockKeeper({ clock, store, log }, this.#machineClock());
    await keeper.restore();
    const events: CloudEventBus = new EventBus((error) =>
      log.error({ err: error }, 'an event listener failed'),
    );
    const wakeups: WakeupBus = isLocal ? noWakeups : this.#world.wakeups.join(process);
    const queue = new JobQueue({
      store: store.jobs,
      wakeups,
      clock,
      log,
      deliveryOf: (job, payloads) => deliveryOf(job, payloads, ids.resource(), clock.now()),
      events,
      instanceRuns: async (endpointId, workerId) =>
        (await store.workers.findWorker(endpointId, workerId))?.endedAt === null,
    });
    await queue.recover();
    const reaper = new JobReaperLoop(queue.reaper, log, SWEEP_INTERVAL_MS);
    const reconciler = createWorkerReconciler({
      store: store.workers,
      queue,
      events,
      engines: new Map([[DATA_CENTER, engine.connect(process, clock)]]),
      endpoint: async (id) => endpoints.get(id),
      resolveEnv: async (_accountId, env) => env,
      credentials: async () => undefined,
      serverUrl: async () => 'http://berth',
      volume: async () => undefined,
      artifact: async () => undefined,
      pythonHook: () => undefined,
      tokenFor: () => 'token',
      probe: () => Promise.reject(new Error('there are no load balancing workers here')),
      clock,
      ids,
      log,
    });
    const election = isLocal ? singleServerElection() : this.#world.election.join(process);
    wakeups.subscribe((wakeup: Wakeup) => {
      if (wakeup.kind === 'missed') reconciler.resync();
    });
    const clockChecks = runClockKeeper(keeper, log);
    reaper.start();
    election.start(
      () => {
        log.info({}, 'it leads');
        keeper.isLeading = true;
        reconciler.start().catch((error: unknown) => log.error({ err: error }, 'workers cannot be managed'));
      },
      () => {
        log.info({}, 'it leads no more');
        keeper.isLeading = false;
        reconciler.pause();
      },
    );
    return {
      process,
      clock,
      queue,
      close: async () => {
        queue.close();
        await election.close();
        await reconciler.close();
        await reaper.close();
        await clockChecks.close();
      },
    };
  }

  /** The clock of PostgreSQL, asked over the same connection as everything else. */
  #databaseClock({ clock, ledger }: Pick<Store, 'clock' | 'ledger'>): Store['clock'] {
    const { time, databaseClock } = this.#world;
    return {
      ...clock,
      databaseTime: async () => {
        await ledger.savedPrices();
        return {
          now: Math.floor(time.timeOfDay + databaseClock.ahead),
          shared: databaseClock.shared,
        };
      },
      saveShared: async (shared) => {
        await ledger.savedPrices();
        databaseClock.shared = shared;
      },
    };
  }

  /** What is left of a server's time on its machine when it is down. */
  #machineClock(): SavedTimeDeps {
    const { time } = this.#world;
    return {
      file: 'clock.json',
      machine: { uptime: () => Math.floor(time.now), boot: () => 'boot' },
      files: {
        read: () => this.machine.savedClock,
        write: (_file, text) => void (this.machine.savedClock = text),
      },
    };
  }
}

const noWakeups: WakeupBus = {
  publish: () => undefined,
  subscribe: () => undefined,
  close: async () => undefined,
};
