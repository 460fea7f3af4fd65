import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import { ContainerReach } from './container-reach.ts';
import { DockerConnection } from './engines/docker/connection.ts';
import type { InstanceEngine } from './engines/engine.ts';
import { GpuShelf } from './engines/gpu-shelf.ts';
import { ProcessEngine } from './engines/process/engine.ts';
import { endPackageScope } from './engines/process/package-scope.ts';
import { Fleet } from './fleet/fleet.ts';
import { Domain } from './http/gateway/domain.ts';
import { Gateway } from './http/gateway/gateway.ts';
import { probe } from './http/gateway/health-check.ts';
import { PodGateway } from './http/gateway/pod-gateway.ts';
import { listeningAt, originOf } from './http/origin.ts';
import { JobFace } from './http/jobs/face.ts';
import { FlashAddresses } from './http/jobs/flash-addresses.ts';
import { OpenAiFace } from './http/openai/face.ts';
import { jobLimits, JobRateLimits } from './http/jobs/rate-limits.ts';
import { showWebhooks } from './http/metrics.ts';
import { createHttpServer, createWorkerServer } from './http/server.ts';
import { S3Face } from './http/s3/face.ts';
import { TerminalFace } from './http/terminal/face.ts';
import { EndpointTraffic } from './http/traffic.ts';
import { WorkerFace } from './http/workers/face.ts';
import { WorkerTokens } from './http/workers/tokens.ts';
import { JobQueue } from './jobs/queue.ts';
import { Sweeper } from './jobs/sweeper.ts';
import { deliveryOf } from './jobs/webhooks/delivery.ts';
import { senderOptions } from './jobs/webhooks/options.ts';
import { WebhookSender } from './jobs/webhooks/sender.ts';
import { webhookSecret } from './jobs/webhooks/signature.ts';
import { Webhooks } from './jobs/webhooks/webhooks.ts';
import { Billing } from './metering/billing.ts';
import { applyPrices } from './metering/repricing.ts';
import { usageRules } from './metering/usage-rules.ts';
import { Accounts } from './resources/accounts/accounts.ts';
import { Clusters } from './resources/clusters/clusters.ts';
import { Catalog } from './resources/catalog/catalog.ts';
import { defineDataCenter, DOCKER_DATA_CENTER } from './resources/catalog/data-centers.ts';
import { virtualGpus } from './resources/catalog/virtual-gpus.ts';
import type { Context } from './resources/context.ts';
import { EndpointDirectory } from './resources/endpoints/directory.ts';
import { Endpoints } from './resources/endpoints/endpoints.ts';
import { EndpointWorkers } from './resources/endpoints/workers.ts';
import { Artifacts } from './resources/flash/artifacts.ts';
import { Flash } from './resources/flash/flash.ts';
import { Hub } from './resources/hub/hub.ts';
import { Images } from './resources/images/images.ts';
import { PodDoors } from './resources/pods/doors.ts';
import { Pods } from './resources/pods/pods.ts';
import { jupyterPassword } from './pods/jupyter-password.ts';
import { PodKeeper } from './pods/keeper.ts';
import { VolumeDisks } from './pods/volume-disks.ts';
import { volumeFolder } from './resources/volumes/folder.ts';
import { Gate } from './resources/keys/gate.ts';
import { Keys } from './resources/keys/keys.ts';
import { LoginRequests } from './resources/keys/login-requests.ts';
import { PodTokens } from './resources/keys/pod-tokens.ts';
import { S3Keys } from './resources/keys/s3-keys.ts';
import { Models } from './resources/models/models.ts';
import { Delegations } from './resources/registries/delegations.ts';
import { EcrLogin, identityFrom } from './resources/registries/ecr-login.ts';
import { PullCredentials } from './resources/registries/pull-credentials.ts';
import { Registries } from './resources/registries/registries.ts';
import type { AllResources } from './resources/resources.ts';
import { Secrets } from './resources/secrets/secrets.ts';
import { Templates } from './resources/templates/templates.ts';
import { Terminals } from './resources/terminals/terminals.ts';
import { VolumeContents } from './resources/volumes/contents.ts';
import { Volumes } from './resources/volumes/volumes.ts';
import { settleRootKey } from './root-key.ts';
import type { RootKey } from './root-key.ts';
import { openStore } from './store/open.ts';
import { lockData } from './store/sqlite/lock.ts';
import { Changes } from './support/changes.ts';
import type { Clock } from './support/clock.ts';
import { systemClock } from './support/clock.ts';
import type { Config } from './support/config/config.ts';
import { Sealer } from './support/crypto.ts';
import { openDataFolder } from './support/data-folder.ts';
import type { Ids } from './support/ids.ts';
import { randomIds } from './support/ids.ts';
import { installationOf } from './support/installation.ts';
import type { Log } from './support/log.ts';
import { loadMasterKey } from './support/master-key.ts';

/** Workers that come with the program. */
const EXAMPLES = fileURLToPath(new URL('../../../examples', import.meta.url));
const NOTE_USES_EVERY_MS = 30_000;
const PROBE_WITHIN_MS = 2_000;

export interface CloudParts {
  config: Config;
  log: Log;
  clock?: Clock;
  ids?: Ids;
}

export interface Cloud {
  http: FastifyInstance;
  rootKey: RootKey;
  /** Takes up the workers that are there and begins to look after them. Call it when the server listens: they must reach it. */
  begin(): void;
  close(): Promise<void>;
  /** Cuts off whoever is still being answered. */
  cut(): Promise<void>;
}

/** The one place where the parts are wired together. */
export async function createCloud({
  config,
  log,
  clock = systemClock,
  ids = randomIds,
}: CloudParts): Promise<Cloud> {
  openDataFolder(config.data);
  const lock = config.database === '' ? lockData(config.data) : undefined;
  try {
    endPackageScope(config.data);
    const given = config.rootKey || undefined;
    const masterKey = loadMasterKey(
      config.data,
      config.masterKey === '' ? undefined : Buffer.from(config.masterKey, 'hex'),
      given,
    );
    const store = await openStore({
      database: config.database,
      data: config.data,
      poolSize: config.databasePool,
      sealer: new Sealer(masterKey),
      usage: usageRules(config.prices),
      onError: (error) => log.warn({ err: error }, 'a database connection failed'),
    });
    const context: Context = { store, clock, ids };
    const rootKey = await settleRootKey(context, config.data, given);

    // Engines on one machine share its GPUs.
    const machine = {
      clock,
      log,
      virtualGpus: virtualGpus(config.gpus),
      gpus: new GpuShelf(),
      data: resolve(config.data),
    };
    const engines = new Map<string, InstanceEngine>([['process', new ProcessEngine({ ...machine, ids })]]);
    const dataCenters = config.dataCenters.map(defineDataCenter);
    const docker =
      config.docker === 'off'
        ? undefined
        : new DockerConnection({
            ...machine,
            installation: installationOf({ data: config.data, database: config.database, masterKey }, ids),
            ...(config.docker !== 'auto' && { host: config.docker }),
            onFound: async (engine) => {
              await containers.url(engine);
              if (engines.has('docker') || sites.has(DOCKER_DATA_CENTER.id)) return;
              catalog.connect(DOCKER_DATA_CENTER, engine);
              sites.set(DOCKER_DATA_CENTER.id, engine);
              await fleet.connect(DOCKER_DATA_CENTER.id);
              await keeper.connect(DOCKER_DATA_CENTER.id);
            },
          });
    if (docker !== undefined && dataCenters.some(({ engine }) => engine === 'docker'))
      engines.set('docker', await docker.engine());
    const catalog = new Catalog({ dataCenters, engines, prices: config.prices });
    const directory = new EndpointDirectory(store.endpoints, clock);
    const podTokens = new PodTokens(masterKey);
    const gate = new Gate(context, podTokens);
    const webhookSecretOf = (accountId: string): string => webhookSecret(masterKey, accountId);
    const sender = new WebhookSender({
      store: store.jobs,
      clock,
      log,
      options: senderOptions(config.webhooks),
      secretOf: webhookSecretOf,
    });
    const queue = new JobQueue({
      store: store.jobs,
      wakeups: store.wakeups,
      clock,
      log,
      deliveryOf: (job, payloads) => deliveryOf(job, payloads, ids.resource(), clock.now()),
      onDelivery: () => sender.poke(),
      instanceRuns: async (endpointId, workerId) =>
        (await store.fleet.findWorker(endpointId, workerId))?.endedAt === null,
    });
    const sweeper = new Sweeper(queue.caretaker, log);
    await queue.recover();
    store.wakeups.listen((wakeup) => {
      if (wakeup.kind === 'pod') {
        podDoors.forget(wakeup.podId);
        podChanges.tell(wakeup.podId);
        keeper.poke(wakeup.podId);
      } else if (wakeup.kind === 'missed') {
        keeper.resync();
        gate.forget();
      }
      if (wakeup.kind !== 'forget') return;
      if (wakeup.what === 'keys') {
        gate.forget();
        s3Keys.forget();
      } else {
        directory.forget();
        gateway.lookAgain();
      }
    });
    const s3Keys = new S3Keys(context, () => store.wakeups.publish({ kind: 'forget', what: 'keys' }));
    const volumeContents = new VolumeContents(context, config.data, (error) =>
      log.warn(
        { err: error },
        'the data of a removed network volume is still on disk, below volumes/.s3/.removed',
      ),
    );
    const tokens = new WorkerTokens(masterKey);
    const pulls = new PullCredentials(
      store,
      new EcrLogin({ identity: identityFrom(process.env), endpoint: config.ecrEndpoint, clock }),
    );
    const secrets = new Secrets(context);
    const sites = new Map(
      dataCenters.flatMap(({ id, engine }) => {
        const found = engines.get(engine);
        return found === undefined ? [] : [[id, found] as const];
      }),
    );
    const urlFor = async (dataCenterId: string): Promise<string> => {
      if (docker !== undefined && sites.get(dataCenterId)?.kind === 'docker')
        return containers.url(await docker.engine());
      return config.workerUrl === '' ? listeningAt(http.server) : config.workerUrl;
    };
    const fleet = new Fleet({
      store: store.fleet,
      queue,
      engines: sites,
      endpoint: (id) => directory.find(id),
      resolveEnv: (accountId, env) => secrets.resolve(accountId, env),
      credentials: (accountId, registryId, image) => pulls.of(accountId, registryId, image),
      volume: (endpoint, dataCenterId) => volumeFolder(store, config.data, endpoint, dataCenterId),
      artifact: (endpoint) => flash.artifactFor(endpoint),
      tokenOf: (endpointId, workerId) => tokens.of(endpointId, workerId),
      workerUrl: (dataCenterId) => urlFor(dataCenterId),
      probe: (host, port, path) => probe(host, port, path, PROBE_WITHIN_MS),
      inFlight: (endpointId, workerId) => gateway.loads(endpointId).get(workerId) ?? 0,
      clock,
      ids,
      log,
    });
    const podChanges = new Changes();
    const podDoors = new PodDoors({ store: store.pods, engines: sites, clock });
    const podChanged = (podId: string): void => {
      podDoors.forget(podId);
      podChanges.tell(podId);
      store.wakeups.publish({ kind: 'pod', podId });
    };
    const keeper: PodKeeper = new PodKeeper({
      store: store.pods,
      engines: sites,
      resolveEnv: (accountId, env) => secrets.resolve(accountId, env),
      credentials: (accountId, registryId, image) => pulls.of(accountId, registryId, image),
      sshKeys: async (accountId) => (await store.accounts.find(accountId))?.sshKeys ?? [],
      jupyterPassword: (podId) => jupyterPassword(masterKey, podId),
      tokenOf: (podId) => podTokens.of(podId),
      apiUrl: urlFor,
      publicIp: (): string => new URL(originOf(config.publicUrl, http.server)).hostname,
      networkVolume: ({ accountId, networkVolumeId, dataCenterId }) =>
        volumeFolder(
          store,
          config.data,
          { accountId, networkVolumeIds: networkVolumeId === null ? [] : [networkVolumeId] },
          dataCenterId,
        ),
      volumeDisks: new VolumeDisks({ path: join(resolve(config.data), 'pods'), store: store.pods, log }),
      onChanged: podChanged,
      clock,
      log,
    });
    const templates = new Templates(context, (endpointId) => {
      directory.forget(endpointId);
      fleet.poke(endpointId);
    });
    const endpoints = new Endpoints(context, {
      catalog,
      templates,
      directory,
      onChanged: (endpointId) => {
        store.wakeups.publish({ kind: 'forget', what: 'endpoints' });
        gateway.lookAgain(endpointId);
        fleet.poke(endpointId);
      },
      onRemoved: async (endpointId) => {
        gateway.lookAgain(endpointId);
        await fleet.removeEndpoint(endpointId);
        await queue.removeEndpoint(endpointId);
        store.wakeups.publish({ kind: 'forget', what: 'endpoints' });
      },
    });
    const pods = new Pods(context, {
      catalog,
      templates,
      prices: config.prices,
      engines: sites,
      changes: podChanges,
      jupyterPassword: (podId) => jupyterPassword(masterKey, podId),
      onChanged: (podId) => {
        podChanged(podId);
        keeper.poke(podId);
      },
    });
    const keys = new Keys(context, () => {
      gate.forget();
      store.wakeups.publish({ kind: 'forget', what: 'keys' });
    });
    const artifacts = new Artifacts({
      folder: join(resolve(config.data), 'artifacts'),
      masterKey,
      clock,
      origin: () => originOf(config.publicUrl, http.server),
    });
    const flash: Flash = new Flash(context, artifacts);
    const resources: AllResources = {
      accounts: new Accounts(context),
      keys,
      templates,
      endpoints,
      pods,
      clusters: new Clusters(context, { pods, range: config.clusterNetwork }),
      volumes: new Volumes(context, catalog, volumeContents),
      registries: new Registries(context),
      delegations: new Delegations(context),
      secrets,
      catalog,
      hub: new Hub(EXAMPLES),
      billing: new Billing(store.ledger, clock),
      flash,
      models: new Models(context),
      loginRequests: new LoginRequests(context, keys),
      images: new Images(context, { folder: join(resolve(config.data), 'images') }),
      workers: new EndpointWorkers(endpoints, fleet, store.fleet, clock),
      s3Keys,
      webhookSecretOf,
    };
    const noting = setInterval(
      () =>
        void Promise.all([gate.noteUses(), s3Keys.noteUses()]).catch((error: unknown) =>
          log.warn({ err: error }, 'the last uses of keys were not written down'),
        ),
      NOTE_USES_EVERY_MS,
    );
    noting.unref();

    const limits = config.rateLimits ? new JobRateLimits(clock, jobLimits(config.jobLimits)) : undefined;
    const jobs = new JobFace({
      queue,
      webhooks: new Webhooks({ store: store.jobs, clock, onDue: () => sender.poke() }),
      endpoints: directory,
      gate,
      limits,
      log,
      fleetReason: (endpoint) => fleet.reason(endpoint),
      fleetCounts: (endpoint) => fleet.counts(endpoint),
      jobLogs: (job, signal) => fleet.jobLogs(job, signal),
    });
    const workers = new WorkerFace({ queue, endpoints: directory, gate, tokens, log });
    const gateway: Gateway = new Gateway({ pool: fleet.pool, gate, endpoints: directory, log });
    const openai = new OpenAiFace({ queue, endpoints: directory, gate, limits, log });
    const domain = new Domain(config.domain, [config.publicUrl, config.workerUrl]);
    const traffic = new EndpointTraffic({
      jobs,
      workers,
      queue,
      log,
      flash: new FlashAddresses(gate, flash),
      balancing: { gateway, openai, endpoints: directory, domain },
      pods: new PodGateway({ doors: podDoors, domain, log }),
      terminals: new TerminalFace({
        terminals: new Terminals(context, { endpoints, engines: sites }),
        gate,
        log,
      }),
    });
    const containers: ContainerReach = new ContainerReach({
      workerUrl: config.workerUrl,
      server: () => http.server,
      createServer: () =>
        createWorkerServer(traffic, {
          isPod: (key) => podTokens.podOf(key) !== undefined,
          serve: (request, response) => http.routing(request, response),
        }),
      log,
    });
    sweeper.start();
    sender.start();

    const s3 = new S3Face({
      keys: s3Keys,
      gate,
      clock,
      volumes: resources.volumes,
      contents: volumeContents,
      log,
    });
    const http: FastifyInstance = createHttpServer(
      {
        resources,
        artifacts,
        gate,
        clock,
        log,
        traffic,
        s3,
        origin: () => originOf(config.publicUrl, http.server),
        ready: () => store.ping(),
      },
      { v1: config.v1, rateLimit: config.rateLimits ? config.rateLimit : undefined, graphql: config.graphql },
    );
    showWebhooks(http, () => sender.counts);
    return {
      http,
      rootKey,
      begin: () => {
        store.leadership.begin(
          () => {
            void applyPrices({ store, prices: config.prices, clock }).catch((error: unknown) =>
              log.error(
                { err: error },
                'the prices of the configuration are not applied to what runs; restart Berth when this is mended',
              ),
            );
            void fleet
              .start()
              .catch((error: unknown) =>
                log.error(
                  { err: error },
                  'workers cannot be looked after; restart Berth when this is mended',
                ),
              );
            void keeper
              .start()
              .catch((error: unknown) =>
                log.error({ err: error }, 'pods cannot be looked after; restart Berth when this is mended'),
              );
          },
          () => {
            fleet.pause();
            keeper.pause();
          },
        );
        docker?.begin();
        void volumeContents.wipeRemoved();
      },
      cut: async () => {
        http.server.closeAllConnections();
        traffic.cut();
        await containers.closeAllConnections();
      },
      close: async () => {
        clearInterval(noting);
        await docker?.close();
        await Promise.all([http.close(), containers.close()]);
        await keeper.close();
        await fleet.close();
        await Promise.all([sweeper.close(), sender.close()]);
        await Promise.all([gate.noteUses(), s3Keys.noteUses()]);
        await store.close();
        lock?.release();
      },
    };
  } catch (error) {
    lock?.release();
    throw error;
  }
}
