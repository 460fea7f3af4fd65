import { MachineClockSync } from '../../../cloud/src/app/machine-clock-sync.ts';
import type { SavedTimeDeps } from '../../../cloud/src/app/saved-time.ts';
import { runClockSync } from '../../../cloud/src/app/run-clock-sync.ts';
import { SharedClockSync } from '../../../cloud/src/app/shared-clock-sync.ts';
import { connectWakeups } from '../../../cloud/src/app/server-wakeups.ts';
import { createPodReconciler } from '../../../cloud/src/compute/pods/pod-policy.ts';
import type { PodVolumeDisks } from '../../../cloud/src/compute/pods/pod-volume-disks.ts';
import { createWorkerShards } from '../../../cloud/src/compute/workers/worker-shards.ts';
import type { CloudEventBus } from '../../../cloud/src/domain/events.ts';
import { JobQueue } from '../../../cloud/src/queue/job-queue.ts';
import { JobReaperLoop } from '../../../cloud/src/queue/job-reaper-loop.ts';
import { WebhookSender } from '../../../cloud/src/queue/webhooks/webhook-sender.ts';
import { webhookSenderOptions } from '../../../cloud/src/queue/webhooks/webhook-options.ts';
import { deliveryOf } from '../../../cloud/src/queue/webhooks/webhook-delivery.ts';
import type { InstanceEngine } from '../../../cloud/src/engines/engine.ts';
import { ledEngine } from '../../../cloud/src/engines/shared/led-engine.ts';
import { singleServerElection } from '../../../cloud/src/store/leader-election.ts';
import type { WakeupBus } from '../../../cloud/src/store/wakeup-bus.ts';
import { EventBus } from '../../../cloud/src/support/event-bus.ts';
import { SteadyClock } from '../../../cloud/src/support/steady-clock.ts';
import type { PodRequests } from './simulated-pod-client.ts';
import { WEBHOOK_ATTEMPTS } from './webhook-check.ts';
import { ACCOUNT } from './simulation-storage.ts';
import { connectToStore } from './store-connection.ts';
import type { SimulatedProcess } from './virtual-time.ts';
import { ServerStore } from './simulated-server-store.ts';
import { DATA_CENTER } from './simulated-world.ts';
import type { Elections, SimulatedWorld } from './simulated-world.ts';

/** Twice a second, as in the server, would be half of all steps of a run. */
const SWEEP_INTERVAL_MS = 2_000;

/** The machine of a server. Its clock goes on while the server is down. */
export interface Machine {
  /** How much its clock is ahead of the true time. */
  ahead: number;
  /** What the server keeps of its time, in a file. */
  savedClock: string | undefined;
}

/** One start of a server. */
export interface ServerStart {
  name: string;
  /** As which it is elected. */
  leader: string;
  machine: Machine;
  process: SimulatedProcess;
  /** Whether it does not reach the database now. */
  isCutOff(): boolean;
}

/** What follows when the owner of an endpoint changes it, in the server that was asked. */
export interface EndpointRequests {
  onChanged(endpointId: string): void;
  onDeleted(endpointId: string): Promise<void>;
}

export interface RunningServer {
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

/** The real parts of a server, connected as in the program. */
export async function composeServer(world: SimulatedWorld, start: ServerStart): Promise<RunningServer> {
  const { name, leader, machine, process, isCutOff } = start;
  const { time, isLocal, engine, endpoints, ids, receiver } = world;
  const log = world.log(name);
  const clock = new SteadyClock({
    now: () => Math.floor(time.timeOfDay + machine.ahead),
    monotonic: () => time.now,
  });
  const opening = new ServerStore(world, process, isCutOff);
  const wakeups: WakeupBus = isLocal ? noWakeups : world.wakeups.join(process);
  const elections: Elections = isLocal
    ? { leader: singleServerElection(), shards: undefined }
    : opening.elect(leader, wakeups, log);
  const election = elections.leader;
  const store = connectToStore(opening.open(name, elections, wakeups, clock), {
    ...opening.connection,
    ...(!isLocal && { leader }),
  });
  const clockSync = isLocal
    ? new MachineClockSync({ clock, store, log, ...savedTime(world, machine) })
    : new SharedClockSync({ clock, store, log }, savedTime(world, machine));
  await clockSync.restore();
  const events: CloudEventBus = new EventBus((error) =>
    log.error({ err: error }, 'an event listener failed'),
  );
  const queue = new JobQueue({
    store: store.jobs,
    wakeups,
    clock,
    log,
    deliveryOf: (job, payloads) => deliveryOf(job, payloads, world.deliveryId(), clock.now()),
    events,
    instanceRuns: async (endpointId, workerId) =>
      (await store.workers.findWorker(endpointId, workerId))?.endedAt === null,
  });
  await queue.recover();
  const reaper = new JobReaperLoop(queue.reaper, log, SWEEP_INTERVAL_MS);
  const driver = engine.connect(process, clock);
  const ledBy = (isLeading: () => boolean): ReadonlyMap<string, InstanceEngine> =>
    new Map([[DATA_CENTER, isLocal ? driver : ledEngine(driver, isLeading)]]);
  const shared = {
    events,
    engines: ledBy(() => election.isLeading()),
    ...(!isLocal && { isLeader: () => election.isLeading() }),
    resolveEnv: async (_accountId: string, env: Record<string, string>) => env,
    credentials: async () => undefined,
    serverUrl: async () => 'http://berth',
    tokenFor: () => 'token',
    clock,
    log,
  };
  const shards = elections.shards;
  const workerDeps = {
    ...shared,
    store: store.leading.workers,
    queue,
    endpoint: async (id: string) => endpoints.get(id),
    volume: async () => undefined,
    artifact: async () => undefined,
    pythonHook: () => undefined,
    probe: () => Promise.reject(new Error('there are no load balancing workers here')),
    ids,
  };
  const workerShards = createWorkerShards({
    count: world.shards,
    isElected: (shard) => (shards ?? election).isElected(shard),
    deps: (shard) =>
      shards === undefined
        ? workerDeps
        : {
            ...workerDeps,
            store: store.workerShards?.leading[shard]?.workers ?? workerDeps.store,
            engines: ledBy(() => shards.isLeading(shard)),
            isLeader: () => shards.isLeading(shard),
          },
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
  const workerReconcilers = workerShards.all.map(({ reconciler }) => reconciler);
  const reconcilers = [...workerReconcilers, podReconciler];
  /** What the leader runs. */
  const led = shards === undefined ? reconcilers : [podReconciler];
  events.subscribe('pod.changed', ({ podId, source }) => {
    if (source !== 'reconciler') podReconciler.wake(podId);
  });
  events.subscribe('endpoint.changed', ({ endpointId }) => {
    if (endpointId !== undefined) workerShards.of(endpointId).reconciler.wake(endpointId);
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
    for (const reconciler of led)
      reconciler.start().catch((error: unknown) => log.error({ err: error }, 'nothing can be managed'));
  };
  const follow = (): void => {
    log.info({}, 'it leads no more');
    clockSync.isLeading = false;
    for (const reconciler of led) reconciler.pause();
  };
  election.start(lead, follow);
  shards?.start({
    hostId: name,
    onLead: (shard) => {
      log.info({ shard }, 'it manages a shard');
      workerReconcilers[shard]
        ?.start()
        .catch((error: unknown) => log.error({ err: error }, 'a shard cannot be managed'));
    },
    onLost: (shard) => {
      log.info({ shard }, 'it manages a shard no more');
      workerReconcilers[shard]?.pause();
    },
    isBusy: (shard) => workerShards.all[shard]?.components.registry.isLaunching() === true,
  });
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
        return workerShards.of(endpointId).components.removals.remove(endpointId);
      },
    },
    close: async () => {
      queue.close();
      if (!isLocal) {
        follow();
        await Promise.all([election.resign(), shards?.resign()]);
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

/** What is left of a server's time on its machine when it is down. */
function savedTime({ time }: SimulatedWorld, machine: Machine): SavedTimeDeps {
  return {
    file: 'clock.json',
    machine: { uptime: () => Math.floor(time.now), boot: () => 'boot' },
    files: {
      read: () => machine.savedClock,
      write: (_file, text) => void (machine.savedClock = text),
    },
  };
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
