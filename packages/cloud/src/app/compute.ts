import { join, resolve } from 'node:path';
import { jupyterPassword } from '../compute/pods/jupyter-password.ts';
import { createPodReconciler } from '../compute/pods/pod-policy.ts';
import { PodVolumeDisks } from '../compute/pods/pod-volume-disks.ts';
import { loadBalancerPorts } from '../compute/workers/worker-spec.ts';
import { FollowerPool } from '../compute/workers/follower-pool.ts';
import { WorkerReports } from '../compute/workers/worker-reports.ts';
import type { WorkerPool } from '../domain/endpoints/worker-pool.ts';
import { ShardedPool } from '../compute/workers/sharded-pool.ts';
import type { WorkerDeps } from '../compute/workers/worker-components.ts';
import { createWorkerShards, type ReconciledShard } from '../compute/workers/worker-shards.ts';
import { Workers } from '../compute/workers/workers.ts';
import type { ReconcilerDeps } from '../compute/reconciler.ts';
import { probeWorker } from '../http/gateway/health-check.ts';
import type { JobQueue } from '../queue/job-queue.ts';
import type { EndpointCache } from '../resources/endpoints/endpoint-cache.ts';
import type { FlashApps } from '../resources/flash/flash-apps.ts';
import { EcrLogin, awsIdentityFromEnv } from '../resources/registries/ecr-login.ts';
import { PullCredentials } from '../resources/registries/pull-credentials.ts';
import type { Secrets } from '../resources/secrets/secrets.ts';
import { findVolumeDirectory } from '../resources/volumes/volume-paths.ts';
import type { PythonHook } from '../engines/instance.ts';
import { PYTHON_WORKER_PACKAGE } from '../support/program-files.ts';
import type { AppContext } from './app-context.ts';
import type { AccountLimits } from './create-account-services.ts';
import type { Auth } from './auth.ts';
import type { Engines } from './engines.ts';
import type { Peers } from './peers.ts';
import type { ServerAddress } from './server-address.ts';
import type { Storage } from './storage.ts';

/**
 * Puts the fast worker channel under the public Python SDK; packages/worker-python/README.md describes it.
 */
const ACCELERATION_HOOK: PythonHook = {
  source: PYTHON_WORKER_PACKAGE,
  path: '/opt/berth/berth_worker',
  entry: 'accelerate/path',
};

const PROBE_TIMEOUT_MS = 2_000;

export interface ComputeDeps {
  storage: Storage;
  auth: Auth;
  engines: Engines;
  queue: JobQueue;
  endpointCache: EndpointCache;
  secrets: Secrets;
  flash: FlashApps;
  address: ServerAddress;
  limits: AccountLimits;
  peers: Peers;
}

/**
 * The reconcilers: they start and stop the instances of workers and pods. The leading server runs them; where endpoints
 * are divided into shards, the one of a shard runs where its lease is.
 */
export interface Compute {
  workers: Workers;
  /** The load balancing workers, for the gateway. */
  pool: WorkerPool;
  pullCredentials: PullCredentials;
  start(): void;
  pause(): void;
  /** Begins to manage a fair share of the workers, where endpoints are divided among the servers. */
  takeShards(): void;
  /** Whether this server starts and stops instances now. */
  isStarted(): boolean;
  connectDataCenter(dataCenterId: string): Promise<void>;
  close(): Promise<void>;
}

export function createCompute(
  { config, log, clock, ids, events }: AppContext,
  { storage, auth, engines, queue, endpointCache, secrets, flash, address, limits, peers }: ComputeDeps,
): Compute {
  const { store, masterKey } = storage;
  const pullCredentials = new PullCredentials(
    store,
    new EcrLogin({ identity: awsIdentityFromEnv(process.env), endpoint: config.ecrEndpoint, clock }),
  );
  const isElected = (): boolean => store.leaderElection.isElected();
  const shards = store.workerShards;
  const shared = {
    engines: engines.led,
    ...(config.database !== '' && { isLeader: () => store.leaderElection.isLeading() }),
    resolveEnv: (accountId: string, env: Record<string, string>) => secrets.resolve(accountId, env),
    credentials: (accountId: string, registryId: string | null, image: string) =>
      pullCredentials.find(accountId, registryId, image),
    serverUrl: (dataCenterId: string) => engines.workerUrl(dataCenterId),
    sandbox: (dataCenterId: string) => engines.sandbox(dataCenterId),
    events,
    clock,
    log,
  };
  /** What the server that manages a shard of workers works with; with one shard, that is the leader. */
  const byShard = (shard: number): Pick<WorkerDeps & ReconcilerDeps, 'store' | 'engines' | 'isLeader'> => ({
    store: shards?.leading[shard]?.workers ?? store.leading.workers,
    engines: engines.ledByShard[shard] ?? engines.led,
    ...(shards !== undefined && { isLeader: () => shards.election.isLeading(shard) }),
  });
  const workerShards = createWorkerShards({
    count: shards?.leading.length ?? 1,
    isElected: (shard) => (shards === undefined ? isElected() : shards.election.isElected(shard)),
    deps: (shard) => ({
      ...shared,
      ...byShard(shard),
      queue,
      ids,
      endpoint: async (id) => limits.endpointInEffect(await endpointCache.find(id)),
      allowedWorkers: ({ accountId, gpuCount }, wanted) =>
        limits.quotas.allowedWorkers(accountId, wanted, gpuCount),
      ...(shards !== undefined && {
        startingWorkers: (accountId: string, work: () => Promise<void>) =>
          limits.quotas.startingWorkers(accountId, work),
      }),
      volume: (endpoint, dataCenterId) => findVolumeDirectory(store, config.data, endpoint, dataCenterId),
      artifact: (endpoint) => flash.findArtifactFile(endpoint),
      pythonHook: ({ type, accelerate }) =>
        type === 'QUEUE' && (accelerate ?? config.accelerate) ? ACCELERATION_HOOK : undefined,
      tokenFor: (endpointId, workerId) => auth.workerTokens.tokenFor(endpointId, workerId),
      probe: (host, port, path) => probeWorker(host, port, path, PROBE_TIMEOUT_MS),
    }),
  });
  const podReconciler = createPodReconciler({
    ...shared,
    store: store.leading.pods,
    sshKeys: async (accountId) => (await store.accounts.find(accountId))?.sshKeys ?? [],
    jupyterPassword: (podId) => jupyterPassword(masterKey, podId),
    tokenFor: (podId) => auth.podTokens.tokenFor(podId),
    publicIp: () => new URL(address.publicOrigin).hostname,
    networkVolume: ({ accountId, networkVolumeId, dataCenterId }) =>
      findVolumeDirectory(
        store,
        config.data,
        { accountId, networkVolumeIds: networkVolumeId === null ? [] : [networkVolumeId] },
        dataCenterId,
      ),
    volumeDisks: new PodVolumeDisks({ path: join(resolve(config.data), 'pods'), store: store.pods, log }),
  });
  events.subscribe('endpoint.changed', ({ endpointId }) => {
    if (endpointId === undefined) return;
    const { reconciler } = workerShards.of(endpointId);
    reconciler.policy.onEndpointChanged(endpointId);
    reconciler.wake(endpointId);
  });
  events.subscribe('pod.changed', ({ podId, source }) => {
    if (source !== 'reconciler') podReconciler.wake(podId);
  });
  events.subscribe('wakeups.missed', () => {
    for (const { reconciler } of workerShards.all) reconciler.resync();
    podReconciler.resync();
  });

  const startOrLog = (part: { start(): Promise<void> }, failure: string): void => {
    part.start().catch((error: unknown) => log.error({ err: error }, failure));
  };
  const startWorkers = ({ reconciler }: ReconciledShard): void =>
    startOrLog(reconciler, 'workers cannot be managed; fix the cause and restart Berth');
  const reports = new WorkerReports({
    shards: workerShards,
    store: store.servers,
    saveReports: (shard, found) => (shards?.leading[shard]?.servers ?? store.servers).saveReports(found),
    hasPeers: () => peers.others.length > 0,
    reach: async (endpointId, { id, dataCenterId }) => {
      const endpoint = await endpointCache.find(endpointId);
      const engine = engines.byDataCenter.get(dataCenterId);
      return endpoint && engine?.address(id, loadBalancerPorts(endpoint)[0]);
    },
    log,
  });
  const pools = new Map(
    workerShards.all.map((shard) => [
      shard,
      new FollowerPool({
        ...shard.components,
        leading: shard.components.pool,
        isLeading: () => shard.isElected(),
        publishDemand: (endpointId, { requests, inFlight }) =>
          store.wakeups.publish({
            kind: 'demand',
            endpointId,
            server: store.server,
            requests,
            inFlight: { ...inFlight },
          }),
      }),
    ]),
  );
  const poolOf = (endpointId: string): FollowerPool => {
    const found = pools.get(workerShards.of(endpointId));
    if (found === undefined) throw new Error('a shard of workers has no pool');
    return found;
  };
  const followers = shards === undefined ? poolOf('') : new ShardedPool(poolOf);
  if (config.database !== '') reports.start();
  let started = false;
  return {
    isStarted: () => started,
    pullCredentials,
    workers: new Workers(workerShards, { ...shared, store: store.workers }),
    pool: config.database === '' ? workerShards.of('').components.pool : followers,
    start: () => {
      started = true;
      if (shards === undefined) workerShards.all.forEach(startWorkers);
      startOrLog(podReconciler, 'pods cannot be managed; fix the cause and restart Berth');
    },
    pause: () => {
      started = false;
      if (shards === undefined) for (const { reconciler } of workerShards.all) reconciler.pause();
      podReconciler.pause();
    },
    takeShards: () =>
      shards?.election.start({
        hostId: peers.hostId,
        onLead: (shard) => {
          log.info(
            { shard: shard + 1, shards: shards.election.shards },
            'this server manages a shard of workers',
          );
          const found = workerShards.all[shard];
          if (found !== undefined) startWorkers(found);
        },
        onLost: (shard) => {
          log.info({ shard: shard + 1 }, 'this server no longer manages a shard of workers');
          workerShards.all[shard]?.reconciler.pause();
        },
        isBusy: (shard) => workerShards.all[shard]?.components.registry.isLaunching() === true,
      }),
    connectDataCenter: async (dataCenterId) => {
      for (const { reconciler } of workerShards.all) await reconciler.connectDataCenter(dataCenterId);
      await podReconciler.connectDataCenter(dataCenterId);
    },
    close: async () => {
      reports.close();
      for (const one of pools.values()) one.close();
      await Promise.all([
        podReconciler.close(),
        ...workerShards.all.map(({ reconciler }) => reconciler.close()),
      ]);
    },
  };
}
