import { resolve } from 'node:path';
import { SnapshotUrls } from '../auth/snapshot-urls.ts';
import {
  defineDataCenter,
  DOCKER_DATA_CENTER,
  KUBERNETES_DATA_CENTER,
} from '../domain/catalog/data-centers.ts';
import type { ContainerSandbox } from '../domain/placement/container-sandbox.ts';
import { DockerConnection } from '../engines/docker/docker-connection.ts';
import type { DockerEngine } from '../engines/docker/docker-engine.ts';
import type { AccountIsolation } from '../domain/placement/engine-capacity.ts';
import type { InstanceEngine } from '../engines/engine.ts';
import type { Instance, InstanceVolume } from '../engines/instance.ts';
import { workerShardOf } from '../domain/endpoints/worker-shards.ts';
import { EngineServer } from '../engines/shared/engine-server.ts';
import { ledEngine } from '../engines/shared/led-engine.ts';
import { clusterEngine, clusterName } from '../engines/shared/cluster-engine.ts';
import type { InstanceHosts } from '../engines/shared/instance-hosts.ts';
import { sharedEngine } from '../engines/shared/shared-engine.ts';
import { GpuAllocator } from '../engines/gpu-allocator.ts';
import type { EnvironmentArchives } from '../engines/process/python/environment-archives.ts';
import { ProcessEngine } from '../engines/process/process-engine.ts';
import { Catalog } from '../resources/catalog/catalog.ts';
import { virtualGpus } from '../resources/catalog/virtual-gpus.ts';
import type { FileOwner } from '../support/file-owner.ts';
import type { Log } from '../support/log.ts';
import { PeerSignature } from '../support/peer-signature.ts';
import { DEFAULT_USER_RANGE, parseUserRange } from '../support/user-range.ts';
import { loadInstallationId } from '../support/installation-id.ts';
import type { AppContext } from './app-context.ts';
import { createDeployedFolders } from './deployed-folders.ts';
import { createKubernetesEngines } from './kubernetes-engines.ts';
import type { Peers } from './peers.ts';
import type { ServerAddress } from './server-address.ts';
import type { Storage } from './storage.ts';
import { WorkerUrlResolver } from './worker-url-resolver.ts';

const MS_PER_DAY = 24 * 3_600_000;
const BYTES_PER_GB = 1024 ** 3;

/**
 * The engines of this machine, the data centers that they serve, and how their instances reach this server.
 */
export interface Engines {
  byDataCenter: ReadonlyMap<string, InstanceEngine>;
  /** The same, for the work of the leading server. */
  led: ReadonlyMap<string, InstanceEngine>;
  /** The same, for the work of the server that holds a shard of workers; without shards, that of the leading one. */
  ledByShard: readonly ReadonlyMap<string, InstanceEngine>[];
  /** Answers the other servers about the instances of this machine. */
  server: EngineServer;
  catalog: Catalog;
  /** The address at which instances in this data center reach this server. */
  workerUrl(dataCenterId: string): Promise<string>;
  /** How the containers of this data center are confined, where the operator has changed it. */
  sandbox(dataCenterId: string): ContainerSandbox | undefined;
  /** Whom the files of an account belong to in this data center; undefined for the user that runs Berth. */
  fileOwner(accountId: string, dataCenterId: string): Promise<FileOwner | undefined>;
  /**
   * Looks for a Docker daemon until one answers. `onDataCenter` is called for the data center that it then
   * serves.
   */
  start(onDataCenter: (dataCenterId: string) => Promise<void>): void;
  destroyConnections(): Promise<void>;
  /** Stops looking for Docker. */
  stopDiscovery(): Promise<void>;
  /** Closes the server that containers reach. */
  closeWorkerServer(): Promise<void>;
  /** Releases what the engines hold in this process. Instances continue. */
  close(): Promise<void>;
}

export async function createEngines(
  { config, log, clock, ids }: AppContext,
  {
    masterKey,
    store,
    environments,
  }: Pick<Storage, 'masterKey' | 'store'> & { environments?: EnvironmentArchives | undefined },
  address: ServerAddress,
  peers: Peers,
): Promise<Engines> {
  const virtual = virtualGpus(config.gpus);
  // Engines on one machine share its GPUs.
  const machine = {
    clock,
    log,
    virtualGpus: virtual,
    gpus: new GpuAllocator(),
    data: resolve(config.data),
    diskReserve: config.diskReserve,
    volumeSize: async ({ id, shared }: InstanceVolume, accountId: string) =>
      shared
        ? (await store.volumes.find(accountId, id))?.size
        : (await store.pods.findInAnyAccount(id))?.volumeSize,
    logLimits: { bytes: config.instanceLog.size, bytesPerSecond: config.instanceLog.rate },
  };
  if (virtual.length > 0)
    log.info(
      { gpus: virtual.map(({ gpuTypeId, total }) => `${total}x ${gpuTypeId}`) },
      'virtual GPUs are on (gpus): on a machine without a GPU, pods and workers that ask for one get only its name',
    );
  const installation = (): string =>
    loadInstallationId({ data: config.data, database: config.database, masterKey }, ids);
  const docker =
    config.docker === 'off'
      ? undefined
      : new DockerConnection({
          ...machine,
          accountRange: config.containerNetwork,
          clusterRange: config.clusterNetwork,
          installation: installation(),
          ...(config.docker !== 'auto' && { host: config.docker }),
          deployedFolders: createDeployedFolders(config, new SnapshotUrls(masterKey), () =>
            dockerWorkerUrl(),
          ),
        });
  const { keepDays, maxGb, installUv } = config.pythonEnvironments;
  const processEngine = new ProcessEngine({
    ...machine,
    ids,
    isolation: config.process.isolation,
    users: parseUserRange(config.process.users) ?? DEFAULT_USER_RANGE,
    readablePaths: config.process.readablePaths === 'none' ? [] : config.process.readablePaths,
    ownPorts: [config.port, config.tls.redirectPort].filter((port) => port > 0),
    python: {
      installUv,
      eviction: { keepMs: keepDays * MS_PER_DAY, maxBytes: maxGb * BYTES_PER_GB },
      archives: environments,
    },
    deployedImages: () => store.endpoints.listLocalImages(),
  });
  const engines = new Map<string, InstanceEngine>([['process', processEngine]]);
  let localDocker: InstanceEngine | undefined;
  const dataCenters = config.dataCenters.map(({ id, name, region, engine }) =>
    defineDataCenter({
      id,
      ...(name !== undefined && { name }),
      ...(region !== undefined && { region }),
      ...(engine !== undefined && { engine }),
    }),
  );
  if (docker !== undefined && dataCenters.some(({ engine }) => engine === 'docker'))
    engines.set('docker', await docker.engine());
  const isLeading = (): boolean => store.leaderElection.isLeading();
  const shards = store.workerShards;
  /** Workers are managed by the holder of the shard of their endpoint. Without labels: whether it manages any. */
  const manages = (labels?: Instance['labels']): boolean => {
    if (shards === undefined) return isLeading();
    const { election } = shards;
    if (labels === undefined)
      return isLeading() || shards.leading.some((_, shard) => election.isLeading(shard));
    const shard = shardOfInstance(labels, election.shards);
    return shard === undefined ? isLeading() : election.isLeading(shard);
  };
  const clusters = await createKubernetesEngines(config, {
    clock,
    log,
    address,
    installation,
    isLeading: manages,
    isShared: shards !== undefined,
    masterKey,
  });
  const onThisMachine = dataCenters.filter(({ engine }) => engine !== 'kubernetes');
  const catalog = new Catalog({ dataCenters: onThisMachine, engines, prices: config.prices });
  const signature = new PeerSignature(masterKey);
  const hosts: InstanceHosts = {
    hostState: (hostId) => peers.hostState(hostId),
    get otherHosts() {
      return peers.otherHosts;
    },
    findHost: (id) => store.servers.findHost(id),
    saveHosts: async (instances) => {
      const byShard = Map.groupBy(
        instances,
        ({ labels }) => shards && shardOfInstance(labels, shards.leading.length),
      );
      for (const [shard, found] of byShard) {
        const servers = shard === undefined ? store.servers : shards?.leading[shard]?.servers;
        await servers?.saveHosts(
          found.map(({ id }) => id),
          peers.hostId,
        );
      }
    },
  };
  const share = (local: InstanceEngine): InstanceEngine =>
    config.database === '' || (local.kind !== 'process' && local.kind !== 'docker')
      ? local
      : sharedEngine({ local, hosts, signature, clock, log });
  const led = new LedEngines(config.database === '' ? undefined : isLeading);
  const ledByShard = shards?.leading.map(
    (_, shard) => new LedEngines(() => shards.election.isLeading(shard)),
  ) ?? [led];
  const addLed = (dataCenterId: string, engine: InstanceEngine): void => {
    for (const one of new Set([led, ...ledByShard])) one.add(dataCenterId, engine);
  };
  const sharedEngines = new Map([...engines].map(([kind, engine]) => [kind, share(engine)] as const));
  const byDataCenter = new Map(
    onThisMachine.flatMap(({ id, engine }) => {
      const found = sharedEngines.get(engine);
      return found === undefined ? [] : [[id, found] as const];
    }),
  );
  // Each data center on Kubernetes is a cluster of its own, which every server reaches.
  if (clusters.size > 0 && !dataCenters.some(({ engine }) => engine === 'kubernetes'))
    dataCenters.push(KUBERNETES_DATA_CENTER);
  for (const dataCenter of dataCenters) {
    const cluster = clusters.get(dataCenter.id)?.engine;
    if (cluster === undefined) continue;
    catalog.addDataCenter(dataCenter, cluster);
    byDataCenter.set(
      dataCenter.id,
      config.database === ''
        ? cluster
        : clusterEngine({
            local: cluster,
            dataCenterId: dataCenter.id,
            hosts,
            ...(shards !== undefined && { manages: ({ labels }) => manages(labels) }),
            signature,
            log,
          }),
    );
  }
  for (const [id, engine] of byDataCenter) addLed(id, engine);
  const engineServer = new EngineServer({
    signature,
    engine: (name) =>
      engines.get(name) ??
      (name === 'docker' ? localDocker : [...clusters].find(([id]) => clusterName(id) === name)?.[1].engine),
  });
  const workerUrls = new WorkerUrlResolver({ workerUrl: config.workerUrl, address, log });
  const dockerWorkerUrl = async (): Promise<string> => {
    if (docker === undefined) throw new Error('Docker is off');
    return workerUrls.resolve(await docker.engine());
  };

  /** Docker serves a data center of its own unless the configuration gives it one. */
  const addDocker = async (
    engine: DockerEngine,
    onDataCenter: (dataCenterId: string) => Promise<void>,
  ): Promise<void> => {
    await workerUrls.resolve(engine);
    if (engines.has('docker') || byDataCenter.has(DOCKER_DATA_CENTER.id)) return;
    catalog.addDataCenter(DOCKER_DATA_CENTER, engine);
    localDocker = engine;
    const shared = share(engine);
    byDataCenter.set(DOCKER_DATA_CENTER.id, shared);
    addLed(DOCKER_DATA_CENTER.id, shared);
    await onDataCenter(DOCKER_DATA_CENTER.id);
  };

  return {
    byDataCenter,
    led: led.byDataCenter,
    ledByShard: ledByShard.map(({ byDataCenter: engines }) => engines),
    server: engineServer,
    catalog,
    workerUrl: async (dataCenterId) => {
      if (byDataCenter.get(dataCenterId)?.kind === 'docker') return dockerWorkerUrl();
      const cluster = clusters.get(dataCenterId);
      if (cluster !== undefined) return cluster.workerUrl();
      return config.workerUrl === '' ? address.listeningOrigin : config.workerUrl;
    },
    sandbox: (dataCenterId) => config.dataCenters.find(({ id }) => id === dataCenterId),
    fileOwner: async (accountId, dataCenterId) => {
      const kind = byDataCenter.get(dataCenterId)?.kind;
      if (kind === 'process') return processEngine.fileOwner(accountId);
      return kind === 'docker' ? (await docker?.engine())?.fileOwner() : undefined;
    },
    start: (onDataCenter) => {
      // After the first answers: the probe starts processes.
      setImmediate(() => void logIsolation(processEngine, log));
      docker?.start((engine) => addDocker(engine, onDataCenter));
    },
    destroyConnections: () => workerUrls.closeAllConnections(),
    stopDiscovery: async () => docker?.close(),
    closeWorkerServer: () => workerUrls.close(),
    close: async () => {
      await Promise.all([...new Set(byDataCenter.values())].map((engine) => engine.close()));
    },
  };
}

/** Engines in the hands of the server that leads, by data center. Data centers that share one share its wrapper too. */
class LedEngines {
  readonly byDataCenter = new Map<string, InstanceEngine>();
  readonly #wrapped = new Map<InstanceEngine, InstanceEngine>();
  readonly #isLeading: (() => boolean) | undefined;

  /** Without `isLeading`, there is only one server. */
  constructor(isLeading: (() => boolean) | undefined) {
    this.#isLeading = isLeading;
  }

  add(dataCenterId: string, engine: InstanceEngine): void {
    const wrapped =
      this.#wrapped.get(engine) ??
      (this.#isLeading === undefined ? engine : ledEngine(engine, this.#isLeading));
    this.#wrapped.set(engine, wrapped);
    this.byDataCenter.set(dataCenterId, wrapped);
  }
}

/** Undefined for what is not the worker of an endpoint. */
function shardOfInstance({ kind, endpoint }: Instance['labels'], shards: number): number | undefined {
  return kind === 'worker' && endpoint !== undefined ? workerShardOf(endpoint, shards) : undefined;
}

const ISOLATION_MESSAGES: Readonly<Record<AccountIsolation, string>> = {
  containers: 'accounts are kept apart by containers',
  namespaces: 'process engine: each account runs as a user of its own, in namespaces',
  users: 'process engine: each account runs as a user of its own, without namespaces',
  refused: 'process engine: only the root account can run processes',
  none:
    'process engine: process.isolation is none, so every account can read and change everything of ' +
    'every other one and of Berth',
};

/** Says at the start how accounts are kept apart. */
async function logIsolation(engine: ProcessEngine, log: Log): Promise<void> {
  try {
    const { mode, reason } = await engine.describeIsolation();
    const level = mode === 'none' || mode === 'users' ? 'warn' : 'info';
    log[level]({ isolation: mode, ...(reason !== undefined && { reason }) }, ISOLATION_MESSAGES[mode]);
  } catch (error) {
    log.warn({ err: error }, 'the isolation of accounts on this machine could not be determined');
  }
}
