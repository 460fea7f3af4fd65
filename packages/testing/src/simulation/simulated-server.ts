import { MachineClockSync } from '../../../cloud/src/app/machine-clock-sync.ts';
import type { SavedTimeDeps } from '../../../cloud/src/app/saved-time.ts';
import { runClockSync } from '../../../cloud/src/app/run-clock-sync.ts';
import { SharedClockSync } from '../../../cloud/src/app/shared-clock-sync.ts';
import { connectWakeups } from '../../../cloud/src/app/server-wakeups.ts';
import { createPodReconciler } from '../../../cloud/src/compute/pods/pod-policy.ts';
import type { PodVolumeDisks } from '../../../cloud/src/compute/pods/pod-volume-disks.ts';
import { createWorkerReconciler } from '../../../cloud/src/compute/workers/worker-policy.ts';
import type { CloudEventBus } from '../../../cloud/src/domain/events.ts';
import type { Endpoint } from '../../../cloud/src/domain/records.ts';
import { JobQueue } from '../../../cloud/src/queue/job-queue.ts';
import { JobReaperLoop } from '../../../cloud/src/queue/job-reaper-loop.ts';
import { WebhookSender } from '../../../cloud/src/queue/webhooks/webhook-sender.ts';
import { webhookSenderOptions } from '../../../cloud/src/queue/webhooks/webhook-options.ts';
import { deliveryOf } from '../../../cloud/src/queue/webhooks/webhook-delivery.ts';
import { ledEngine } from '../../../cloud/src/engines/shared/led-engine.ts';
import type { ClockStore, SharedTime } from '../../../cloud/src/store/clock-store.ts';
import type { Database } from '../../../cloud/src/store/database.ts';
import { fencedDatabase } from '../../../cloud/src/store/fenced-database.ts';
import { singleServerElection } from '../../../cloud/src/store/leader-election.ts';
import type { LeaderElection } from '../../../cloud/src/store/leader-election.ts';
import { LeaseElection } from '../../../cloud/src/store/lease-election.ts';
import type { Store } from '../../../cloud/src/store/store.ts';
import type { WakeupBus } from '../../../cloud/src/store/wakeup-bus.ts';
import { EventBus } from '../../../cloud/src/support/event-bus.ts';
import type { Ids } from '../../../cloud/src/support/ids.ts';
import type { Log } from '../../../cloud/src/support/log.ts';
import { SteadyClock } from '../../../cloud/src/support/steady-clock.ts';
import type { SeededRandom } from '../safety/seeded-random.ts';
import type { SimulatedEngine } from './simulated-engine.ts';
import { simulatedLeaseTable } from './simulated-lease-table.ts';
import type { PodRequests, PodServer } from './simulated-pod-client.ts';
import type { SimulatedReceiver } from './simulated-receiver.ts';
import type { SimulatedWakeups } from './simulated-wakeups.ts';
import { WEBHOOK_ATTEMPTS } from './webhook-check.ts';
import type { WebhookLeases } from './webhook-leases.ts';
import { ACCOUNT } from './simulation-storage.ts';
import { connect, connectToStore } from './store-connection.ts';
import type { StoreConnectionDeps, StoreFaults, UsedStore } from './store-connection.ts';
import type { SimulatedProcess, VirtualTime } from './virtual-time.ts';

export const DATA_CENTER = 'SIM-1';
/** Twice a second, as in the server, would be half of all steps of a run. */
const SWEEP_INTERVAL_MS = 2_000;

/** As over PostgreSQL; other calls wait for minutes. */
const LEASE_CALL_TIMEOUT_MS = 2_000;

/** What all servers of a run share. */
export interface SimulatedWorld {
  time: VirtualTime;
  random: SeededRandom;
  database: Database;
  /** What a server with this election sees of the database. */
  openStore(election: LeaderElection, wakeups: WakeupBus): Store;
  storeFaults: StoreFaults;
  /** One server with SQLite; else several, with PostgreSQL. */
  isLocal: boolean;
  engine: SimulatedEngine;
  wakeups: SimulatedWakeups;
  receiver: SimulatedReceiver;
  webhookLeases: WebhookLeases;
  endpoints: Map<string, Endpoint>;
  /** How much the clock of the database is ahead, and what the leading server wrote about it. */
  databaseClock: { ahead: number; shared: SharedTime | undefined };
  ids: Ids;
  deliveryId(): string;
  log(server: string): Log;
  /** A call of the store that may write is executed, or done. */
  onStoreWrite(): void;
  onStoreWriteDone(): void;
}

/** The machine of a server. Its clock goes on while the server is down. */
interface Machine {
  /** How much its clock is ahead of the true time. */
  ahead: number;
  /** What the server keeps of its time, in a file. */
  savedClock: string | undefined;
}

/** What follows when the owner of an endpoint changes it, in the server that was asked. */
interface EndpointRequests {
  onChanged(endpointId: string): void;
  onDeleted(endpointId: string): Promise<void>;
}

interface Running {
  process: SimulatedProcess;
  clock: SteadyClock;
  queue: JobQueue;
  pods: PodRequests;
  endpoints: EndpointRequests;
  /** In order. */
  close(): Promise<void>;
  /** Whatever it is doing: only its memory is left. */
  abandon(): void;
}

/** One server, with the real parts inside. It can crash, freeze, stop and start again. */
export class SimulatedServer implements PodServer {
  readonly name: string;
  readonly machine: Machine = { ahead: 0, savedClock: undefined };
  readonly #world: SimulatedWorld;
  readonly #downListeners = new Set<() => void>();
  #starts = 0;
  /** It does not reach the database before this time. */
  cutOffUntil = 0;
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

  get pods(): PodRequests | undefined {
    return this.#running?.pods;
  }

  /** This server is asked to create an endpoint. */
  createEndpoint(endpoint: Endpoint): void {
    this.#world.endpoints.set(endpoint.id, endpoint);
    this.#inEndpoints((endpoints) => endpoints.onChanged(endpoint.id));
  }

  /** This server is asked to delete an endpoint. What it cannot remove now goes later. */
  deleteEndpoint(endpointId: string): void {
    this.#world.endpoints.delete(endpointId);
    this.#inEndpoints((endpoints) => void endpoints.onDeleted(endpointId).catch(() => undefined));
  }

  #inEndpoints(request: (endpoints: EndpointRequests) => void): void {
    const running = this.#running;
    if (running !== undefined) this.#world.time.runIn(running.process, () => request(running.endpoints));
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
    // This ends what would keep the simulation busy.
    if (running !== undefined) this.#world.time.runIn(process, () => running.abandon());
    this.#notifyDown();
  }

  /** Everything in it stands still for a while, and then goes on. */
  freeze(milliseconds: number): void {
    if (this.#process === undefined) return;
    this.#process.frozenUntil = this.#world.time.now + milliseconds;
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
    this.#notifyDown();
  }

  #notifyDown(): void {
    for (const listener of [...this.#downListeners]) listener();
  }

  async #compose(process: SimulatedProcess): Promise<Running> {
    const { time, isLocal, engine, endpoints, ids, receiver } = this.#world;
    const log = this.#world.log(this.name);
    const clock = new SteadyClock({
      now: () => Math.floor(time.timeOfDay + this.machine.ahead),
      monotonic: () => time.now,
    });
    const connection = this.#connection(process);
    const wakeups: WakeupBus = isLocal ? noWakeups : this.#world.wakeups.join(process);
    const leader = `${this.name}-${(this.#starts += 1)}`;
    const election = isLocal ? singleServerElection() : this.#elect(leader, connection, wakeups, log);
    const store = connectToStore(this.#openStore(election, wakeups, clock), {
      ...connection,
      ...(!isLocal && { leader }),
    });
    const clockSync = isLocal
      ? new MachineClockSync({ clock, store, log, ...this.#machineClock() })
      : new SharedClockSync({ clock, store, log }, this.#machineClock());
    await clockSync.restore();
    const events: CloudEventBus = new EventBus((error) =>
      log.error({ err: error }, 'an event listener failed'),
    );
    const queue = new JobQueue({
      store: store.jobs,
      wakeups,
      clock,
      log,
      deliveryOf: (job, payloads) => deliveryOf(job, payloads, this.#world.deliveryId(), clock.now()),
      events,
      instanceRuns: async (endpointId, workerId) =>
        (await store.workers.findWorker(endpointId, workerId))?.endedAt === null,
    });
    await queue.recover();
    const reaper = new JobReaperLoop(queue.reaper, log, SWEEP_INTERVAL_MS);
    const driver = engine.connect(process, clock);
    const led = isLocal ? driver : ledEngine(driver, () => election.isLeading());
    const shared = {
      events,
      engines: new Map([[DATA_CENTER, led]]),
      ...(!isLocal && { isLeader: () => election.isLeading() }),
      resolveEnv: async (_accountId: string, env: Record<string, string>) => env,
      credentials: async () => undefined,
      serverUrl: async () => 'http://berth',
      tokenFor: () => 'token',
      clock,
      log,
    };
    const workerReconciler = createWorkerReconciler({
      ...shared,
      store: store.leading.workers,
      queue,
      endpoint: async (id) => endpoints.get(id),
      volume: async () => undefined,
      artifact: async () => undefined,
      pythonHook: () => undefined,
      probe: () => Promise.reject(new Error('there are no load balancing workers here')),
      ids,
    });
    const podReconciler = createPodReconciler({
      ...shared,
      store: store.leading.pods,
      sshKeys: async () => [],
      jupyterPassword: () => '',
      publicIp: () => '127.0.0.1',
      networkVolume: async () => undefined,
      volumeDisks: NO_DISKS,
    });
    const reconcilers = [workerReconciler, podReconciler];
    events.subscribe('pod.changed', ({ podId, source }) => {
      if (source !== 'reconciler') podReconciler.wake(podId);
    });
    events.subscribe('endpoint.changed', ({ endpointId }) => {
      if (endpointId !== undefined) workerReconciler.wake(endpointId);
    });
    events.subscribe('wakeups.missed', () => {
      for (const reconciler of reconcilers) reconciler.resync();
    });
    const webhooks = new WebhookSender({
      store: store.jobs,
      clock,
      log,
      options: WEBHOOK_OPTIONS,
      secretOf: () => 'secret',
      post: receiver.connect(process),
    });
    events.subscribe('webhook.due', () => webhooks.wake());
    connectWakeups(events, wakeups);
    const clockChecks = runClockSync(clockSync, log);
    reaper.start();
    webhooks.start();
    const lead = (): void => {
      log.info({}, 'it leads');
      clockSync.isLeading = true;
      for (const reconciler of reconcilers)
        reconciler.start().catch((error: unknown) => log.error({ err: error }, 'nothing can be managed'));
    };
    const follow = (): void => {
      log.info({}, 'it leads no more');
      clockSync.isLeading = false;
      for (const reconciler of reconcilers) reconciler.pause();
    };
    election.start(lead, follow);
    return {
      process,
      clock,
      queue,
      pods: {
        store: store.pods,
        now: () => clock.now(),
        onChanged: (podId) => events.publish('pod.changed', { podId, source: 'request' }),
      },
      endpoints: {
        onChanged: (endpointId) => events.publish('endpoint.changed', { endpointId, source: 'request' }),
        onDeleted: (endpointId) => {
          events.publish('endpoint.removed', { endpointId, accountId: ACCOUNT, source: 'request' });
          return workerReconciler.policy.components.removals.remove(endpointId);
        },
      },
      close: async () => {
        queue.close();
        if (!isLocal) {
          follow();
          await election.resign();
        }
        await Promise.all(reconcilers.map((reconciler) => reconciler.close()));
        await Promise.all([reaper.close(), webhooks.close()]);
        await clockChecks.close();
      },
      abandon: () => {
        queue.close();
        for (const part of [...reconcilers, reaper, webhooks]) void part.close();
        void clockChecks.close();
      },
    };
  }

  #connection(process: SimulatedProcess): StoreConnectionDeps {
    const { time, random, storeFaults, isLocal, onStoreWrite, onStoreWriteDone } = this.#world;
    return {
      time,
      random,
      process,
      faults: storeFaults,
      isCutOff: () => this.cutOffUntil > time.now,
      isLocal,
      onWrite: onStoreWrite,
      onDone: onStoreWriteDone,
    };
  }

  #elect(server: string, connection: StoreConnectionDeps, wakeups: WakeupBus, log: Log): LeaderElection {
    const { database } = this.#world;
    return new LeaseElection({
      server,
      connect: () =>
        simulatedLeaseTable(
          database,
          () => this.#databaseTime(),
          (calls) => connect(calls, { ...connection, timeout: LEASE_CALL_TIMEOUT_MS }),
        ),
      onError: (error) => log.warn({ err: error }, 'the lease could not be renewed'),
      onCutOff: () => undefined,
      onResigned: () => wakeups.publish({ kind: 'resigned' }),
    });
  }

  #openStore(election: LeaderElection, wakeups: WakeupBus, serverClock: SteadyClock): UsedStore {
    const { database, isLocal, openStore, webhookLeases } = this.#world;
    const opened = openStore(election, wakeups);
    const store = { ...opened, jobs: webhookLeases.observe(opened.jobs, this.name, serverClock) };
    if (isLocal) return store;
    const { leading } = store;
    const clock = this.#databaseClock(store.clock, database);
    const fencedClock = this.#databaseClock(leading.clock, fencedDatabase(database, election));
    return { ...store, clock, leading: { ...leading, clock: fencedClock } };
  }

  #databaseTime(): number {
    const { time, databaseClock } = this.#world;
    return Math.floor(time.timeOfDay + databaseClock.ahead);
  }

  /** The clock of PostgreSQL, and what the leading server writes about it. */
  #databaseClock(clock: ClockStore, database: Database): ClockStore {
    const { databaseClock } = this.#world;
    return {
      ...clock,
      databaseTime: async () => ({ now: this.#databaseTime(), shared: databaseClock.shared }),
      saveShared: (shared) =>
        database.write(function* () {
          databaseClock.shared = shared;
        }),
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

const WEBHOOK_OPTIONS = webhookSenderOptions({
  allowPrivate: true,
  attempts: WEBHOOK_ATTEMPTS,
  pause: 5,
  timeout: 5,
  keepLog: 72,
});
/** Pods of the simulation have no volume disks: these would be files. */
const NO_DISKS = {
  pathOf: () => '',
  remove: async () => undefined,
  retryRemovals: async () => undefined,
  removeOrphans: async () => undefined,
} as unknown as PodVolumeDisks;
const noWakeups: WakeupBus = {
  publish: () => undefined,
  subscribe: () => undefined,
  close: async () => undefined,
};
