import { join, resolve } from 'node:path';
import { jupyterPassword } from '../compute/pods/jupyter-password.ts';
import { createPodReconciler } from '../compute/pods/pod-policy.ts';
import { PodVolumeDisks } from '../compute/pods/pod-volume-disks.ts';
import { loadBalancerPorts } from '../compute/workers/worker-spec.ts';
import { createWorkerReconciler } from '../compute/workers/worker-policy.ts';
import { FollowerPool } from '../compute/workers/follower-pool.ts';
import { WorkerReports } from '../compute/workers/worker-reports.ts';
import type { WorkerPool } from '../domain/endpoints/worker-pool.ts';
import { Workers } from '../compute/workers/workers.ts';
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
 * The reconcilers: they start and stop the instances of workers and pods. Only the leading server runs them.
 */
export interface Compute {
  workers: Workers;
  /** The load balancing workers, for the gateway. */
  pool: WorkerPool;
  pullCredentials: PullCredentials;
  start(): void;
  pause(): void;
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
  const workerReconciler = createWorkerReconciler({
    ...shared,
    store: store.leading.workers,
    queue,
    ids,
    endpoint: async (id) => limits.endpointInEffect(await endpointCache.find(id)),
    allowedWorkers: ({ accountId, gpuCount }, wanted) =>
      limits.quotas.allowedWorkers(accountId, wanted, gpuCount),
    volume: (endpoint, dataCenterId) => findVolumeDirectory(store, config.data, endpoint, dataCenterId),
    artifact: (endpoint) => flash.findArtifactFile(endpoint),
    pythonHook: ({ type, accelerate }) =>
      type === 'QUEUE' && (accelerate ?? config.accelerate) ? ACCELERATION_HOOK : undefined,
    tokenFor: (endpointId, workerId) => auth.workerTokens.tokenFor(endpointId, workerId),
    probe: (host, port, path) => probeWorker(host, port, path, PROBE_TIMEOUT_MS),
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
    workerReconciler.policy.onEndpointChanged(endpointId);
    workerReconciler.wake(endpointId);
  });
  events.subscribe('pod.changed', ({ podId, source }) => {
    if (source !== 'reconciler') podReconciler.wake(podId);
  });
  events.subscribe('wakeups.missed', () => {
    workerReconciler.resync();
    podReconciler.resync();
  });

  const startOrLog = (part: { start(): Promise<void> }, failure: string): void => {
    part.start().catch((error: unknown) => log.error({ err: error }, failure));
  };
  const { components } = workerReconciler.policy;
  const isElected = (): boolean => store.leaderElection.isElected();
  const reports = new WorkerReports({
    ...components,
    store: store.servers,
    isLeading: isElected,
    hasPeers: () => peers.others.length > 0,
    reach: async (endpointId, { id, dataCenterId }) => {
      const endpoint = await endpointCache.find(endpointId);
      const engine = engines.byDataCenter.get(dataCenterId);
      return endpoint && engine?.address(id, loadBalancerPorts(endpoint)[0]);
    },
    log,
  });
  const pool = new FollowerPool({
    ...components,
    leading: components.pool,
    isLeading: isElected,
    publishDemand: (endpointId, { requests, inFlight }) =>
      store.wakeups.publish({
        kind: 'demand',
        endpointId,
        server: store.server,
        requests,
        inFlight: { ...inFlight },
      }),
  });
  if (config.database !== '') reports.start();
  let started = false;
  return {
    isStarted: () => started,
    pullCredentials,
    workers: new Workers(components, { ...shared, store: store.workers, isLeader: isElected }),
    pool: config.database === '' ? components.pool : pool,
    start: () => {
      started = true;
      startOrLog(workerReconciler, 'workers cannot be managed; fix the cause and restart Berth');
      startOrLog(podReconciler, 'pods cannot be managed; fix the cause and restart Berth');
    },
    pause: () => {
      started = false;
      workerReconciler.pause();
      podReconciler.pause();
    },
    connectDataCenter: async (dataCenterId) => {
      await workerReconciler.connectDataCenter(dataCenterId);
      await podReconciler.connectDataCenter(dataCenterId);
    },
    close: async () => {
      reports.close();
      pool.close();
      await Promise.all([podReconciler.close(), workerReconciler.close()]);
    },
  };
}
