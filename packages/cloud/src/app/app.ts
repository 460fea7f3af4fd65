import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import { WorkerUrlResolver } from './worker-url-resolver.ts';
import { DockerConnection } from '../engines/docker/docker-connection.ts';
import type { InstanceEngine } from '../engines/engine.ts';
import { GpuAllocator } from '../engines/gpu-allocator.ts';
import { ProcessEngine } from '../engines/process/process-engine.ts';
import { endPackageScope } from '../engines/process/package-scope.ts';
import { WorkerReconciler } from '../compute/workers/worker-reconciler.ts';
import { WildcardDomain } from '../http/gateway/wildcard-domain.ts';
import { EndpointGateway } from '../http/gateway/endpoint-gateway.ts';
import { probeWorker } from '../http/gateway/health-check.ts';
import { PodGateway } from '../http/gateway/pod-gateway.ts';
import { listeningOrigin, publicOrigin } from '../http/server-origin.ts';
import { JobRoutes } from '../http/jobs/jobs.routes.ts';
import { FlashUrlResolver } from '../http/jobs/flash-url-resolver.ts';
import { OpenAiRoutes } from '../http/openai/openai.routes.ts';
import { enabledJobLimits, JobRateLimits } from '../http/jobs/job-rate-limits.ts';
import { exposeWebhookCounts } from '../http/metrics.ts';
import { createHttpServer, createWorkerServer } from '../http/http-server.ts';
import { S3Routes } from '../http/s3/s3.routes.ts';
import { TerminalRoutes } from '../http/terminal/terminal.routes.ts';
import { EndpointRouter } from '../http/endpoint-router.ts';
import { WorkerRoutes } from '../http/workers/workers.routes.ts';
import { WorkerTokens } from '../auth/worker-tokens.ts';
import { JobQueue } from '../queue/job-queue.ts';
import { JobReaperLoop } from '../queue/job-reaper-loop.ts';
import { deliveryOf } from '../queue/webhooks/webhook-delivery.ts';
import { webhookSenderOptions } from '../queue/webhooks/webhook-options.ts';
import { WebhookSender } from '../queue/webhooks/webhook-sender.ts';
import { webhookSecret } from '../queue/webhooks/webhook-signature.ts';
import { WebhookDeliveries } from '../queue/webhooks/webhook-deliveries.ts';
import { Billing } from '../metering/billing.ts';
import { applyPrices } from '../metering/repricing.ts';
import { usageRules } from '../metering/usage-rules.ts';
import { Accounts } from '../resources/accounts/accounts.ts';
import { Clusters } from '../resources/clusters/clusters.ts';
import { Catalog } from '../resources/catalog/catalog.ts';
import { defineDataCenter, DOCKER_DATA_CENTER } from '../domain/catalog/data-centers.ts';
import { virtualGpus } from '../resources/catalog/virtual-gpus.ts';
import type { ResourceContext } from '../resources/resource-context.ts';
import { EndpointCache } from '../resources/endpoints/endpoint-cache.ts';
import { Endpoints } from '../resources/endpoints/endpoints.ts';
import { EndpointWorkers } from '../resources/endpoints/endpoint-workers.ts';
import { FlashArtifacts } from '../resources/flash/flash-artifacts.ts';
import { FlashApps } from '../resources/flash/flash-apps.ts';
import { Hub } from '../resources/hub/hub.ts';
import { Images } from '../resources/images/images.ts';
import { PodPortResolver } from '../resources/pods/pod-port-resolver.ts';
import { Pods } from '../resources/pods/pods.ts';
import { jupyterPassword } from '../compute/pods/jupyter-password.ts';
import { PodReconciler } from '../compute/pods/pod-reconciler.ts';
import { PodVolumeDisks } from '../compute/pods/pod-volume-disks.ts';
import { findVolumeDirectory } from '../resources/volumes/volume-paths.ts';
import { Authenticator } from '../auth/authenticator.ts';
import { ApiKeys } from '../resources/keys/api-keys.ts';
import { LoginRequests } from '../resources/keys/login-requests.ts';
import { PodTokens } from '../auth/pod-tokens.ts';
import { S3Keys } from '../resources/keys/s3-keys.ts';
import { Models } from '../resources/models/models.ts';
import { RegistryDelegations } from '../resources/registries/registry-delegations.ts';
import { EcrLogin, awsIdentityFromEnv } from '../resources/registries/ecr-login.ts';
import { PullCredentials } from '../resources/registries/pull-credentials.ts';
import { Registries } from '../resources/registries/registries.ts';
import type { AllServices } from '../resources/resources.ts';
import { Secrets } from '../resources/secrets/secrets.ts';
import { Templates } from '../resources/templates/templates.ts';
import { Terminals } from '../resources/terminals/terminals.ts';
import { VolumeContents } from '../resources/volumes/volume-contents.ts';
import { Volumes } from '../resources/volumes/volumes.ts';
import { initializeRootKey } from './root-key.ts';
import type { RootKey } from './root-key.ts';
import { openStore } from '../store/open-store.ts';
import { lockDataDirectory } from '../store/sqlite/data-directory-lock.ts';
import { ChangeNotifier } from '../support/change-notifier.ts';
import type { Clock } from '../support/clock.ts';
import { systemClock } from '../support/clock.ts';
import type { Config } from '../support/config/config.ts';
import { Sealer } from '../support/crypto.ts';
import { openDataDirectory } from '../support/data-directory.ts';
import type { Ids } from '../support/ids.ts';
import { randomIds } from '../support/ids.ts';
import { loadInstallationId } from '../support/installation-id.ts';
import type { Log } from '../support/log.ts';
import { loadMasterKey } from '../support/master-key.ts';

/** Workers that come with the program. */
const EXAMPLES = fileURLToPath(new URL('../../../../examples', import.meta.url));
const SAVE_LAST_USED_INTERVAL_MS = 30_000;
const PROBE_TIMEOUT_MS = 2_000;

export interface AppOptions {
  config: Config;
  log: Log;
  clock?: Clock;
  ids?: Ids;
}

export interface App {
  http: FastifyInstance;
  rootKey: RootKey;
  /** Takes up the workers that are there and begins to look after them. Call it when the server listens: they must reach it. */
  start(): void;
  close(): Promise<void>;
  /** Cuts off whoever is still being answered. */
  destroyConnections(): Promise<void>;
}

/** The one place where the parts are wired together. */
export async function createApp({
  config,
  log,
  clock = systemClock,
  ids = randomIds,
}: AppOptions): Promise<App> {
  openDataDirectory(config.data);
  const lock = config.database === '' ? lockDataDirectory(config.data) : undefined;
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
    const context: ResourceContext = { store, clock, ids };
    const rootKey = await initializeRootKey(context, config.data, given);

    // Engines on one machine share its GPUs.
    const machine = {
      clock,
      log,
      virtualGpus: virtualGpus(config.gpus),
      gpus: new GpuAllocator(),
      data: resolve(config.data),
    };
    const engines = new Map<string, InstanceEngine>([['process', new ProcessEngine({ ...machine, ids })]]);
    const dataCenters = config.dataCenters.map(defineDataCenter);
    const docker =
      config.docker === 'off'
        ? undefined
        : new DockerConnection({
            ...machine,
            installation: loadInstallationId(
              { data: config.data, database: config.database, masterKey },
              ids,
            ),
            ...(config.docker !== 'auto' && { host: config.docker }),
            onFound: async (engine) => {
              await containers.resolve(engine);
              if (engines.has('docker') || sites.has(DOCKER_DATA_CENTER.id)) return;
              catalog.addDataCenter(DOCKER_DATA_CENTER, engine);
              sites.set(DOCKER_DATA_CENTER.id, engine);
              await fleet.connectDataCenter(DOCKER_DATA_CENTER.id);
              await reconciler.connectDataCenter(DOCKER_DATA_CENTER.id);
            },
          });
    if (docker !== undefined && dataCenters.some(({ engine }) => engine === 'docker'))
      engines.set('docker', await docker.engine());
    const catalog = new Catalog({ dataCenters, engines, prices: config.prices });
    const directory = new EndpointCache(store.endpoints, clock);
    const podTokens = new PodTokens(masterKey);
    const authenticator = new Authenticator(context, podTokens);
    const webhookSecretOf = (accountId: string): string => webhookSecret(masterKey, accountId);
    const sender = new WebhookSender({
      store: store.jobs,
      clock,
      log,
      options: webhookSenderOptions(config.webhooks),
      secretOf: webhookSecretOf,
    });
    const queue = new JobQueue({
      store: store.jobs,
      wakeups: store.wakeups,
      clock,
      log,
      deliveryOf: (job, payloads) => deliveryOf(job, payloads, ids.resource(), clock.now()),
      onDeliveryDue: () => sender.wake(),
      instanceRuns: async (endpointId, workerId) =>
        (await store.workers.findWorker(endpointId, workerId))?.endedAt === null,
    });
    const sweeper = new JobReaperLoop(queue.reaper, log);
    await queue.recover();
    store.wakeups.subscribe((wakeup) => {
      if (wakeup.kind === 'pod') {
        podPortResolver.invalidate(wakeup.podId);
        podChanges.notify(wakeup.podId);
        reconciler.poke(wakeup.podId);
      } else if (wakeup.kind === 'missed') {
        reconciler.resync();
        authenticator.invalidateCache();
      }
      if (wakeup.kind !== 'forget') return;
      if (wakeup.what === 'keys') {
        authenticator.invalidateCache();
        s3Keys.invalidateCache();
      } else {
        directory.invalidate();
        gateway.refreshEndpoint();
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
      new EcrLogin({ identity: awsIdentityFromEnv(process.env), endpoint: config.ecrEndpoint, clock }),
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
        return containers.resolve(await docker.engine());
      return config.workerUrl === '' ? listeningOrigin(http.server) : config.workerUrl;
    };
    const fleet = new WorkerReconciler({
      store: store.workers,
      queue,
      engines: sites,
      endpoint: (id) => directory.find(id),
      resolveEnv: (accountId, env) => secrets.resolve(accountId, env),
      credentials: (accountId, registryId, image) => pulls.find(accountId, registryId, image),
      volume: (endpoint, dataCenterId) => findVolumeDirectory(store, config.data, endpoint, dataCenterId),
      artifact: (endpoint) => flash.findArtifactFile(endpoint),
      tokenFor: (endpointId, workerId) => tokens.tokenFor(endpointId, workerId),
      workerUrl: (dataCenterId) => urlFor(dataCenterId),
      probe: (host, port, path) => probeWorker(host, port, path, PROBE_TIMEOUT_MS),
      inFlight: (endpointId, workerId) => gateway.inFlightByWorker(endpointId).get(workerId) ?? 0,
      clock,
      ids,
      log,
    });
    const podChanges = new ChangeNotifier();
    const podPortResolver = new PodPortResolver({ store: store.pods, engines: sites, clock });
    const podChanged = (podId: string): void => {
      podPortResolver.invalidate(podId);
      podChanges.notify(podId);
      store.wakeups.publish({ kind: 'pod', podId });
    };
    const reconciler: PodReconciler = new PodReconciler({
      store: store.pods,
      engines: sites,
      resolveEnv: (accountId, env) => secrets.resolve(accountId, env),
      credentials: (accountId, registryId, image) => pulls.find(accountId, registryId, image),
      sshKeys: async (accountId) => (await store.accounts.find(accountId))?.sshKeys ?? [],
      jupyterPassword: (podId) => jupyterPassword(masterKey, podId),
      tokenFor: (podId) => podTokens.tokenFor(podId),
      apiUrl: urlFor,
      publicIp: (): string => new URL(publicOrigin(config.publicUrl, http.server)).hostname,
      networkVolume: ({ accountId, networkVolumeId, dataCenterId }) =>
        findVolumeDirectory(
          store,
          config.data,
          { accountId, networkVolumeIds: networkVolumeId === null ? [] : [networkVolumeId] },
          dataCenterId,
        ),
      volumeDisks: new PodVolumeDisks({ path: join(resolve(config.data), 'pods'), store: store.pods, log }),
      onChanged: podChanged,
      clock,
      log,
    });
    const templates = new Templates(context, (endpointId) => {
      directory.invalidate(endpointId);
      fleet.wake(endpointId);
    });
    const endpoints = new Endpoints(context, {
      catalog,
      templates,
      cache: directory,
      onChanged: (endpointId) => {
        store.wakeups.publish({ kind: 'forget', what: 'endpoints' });
        gateway.refreshEndpoint(endpointId);
        fleet.wake(endpointId);
      },
      onRemoved: async (endpointId) => {
        gateway.refreshEndpoint(endpointId);
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
        reconciler.poke(podId);
      },
    });
    const keys = new ApiKeys(context, () => {
      authenticator.invalidateCache();
      store.wakeups.publish({ kind: 'forget', what: 'keys' });
    });
    const artifacts = new FlashArtifacts({
      folder: join(resolve(config.data), 'artifacts'),
      masterKey,
      clock,
      origin: () => publicOrigin(config.publicUrl, http.server),
    });
    const flash: FlashApps = new FlashApps(context, artifacts);
    const resources: AllServices = {
      accounts: new Accounts(context),
      keys,
      templates,
      endpoints,
      pods,
      clusters: new Clusters(context, { pods, networkRange: config.clusterNetwork }),
      volumes: new Volumes(context, catalog, volumeContents),
      registries: new Registries(context),
      delegations: new RegistryDelegations(context),
      secrets,
      catalog,
      hub: new Hub(EXAMPLES),
      billing: new Billing(store.ledger, clock),
      flash,
      models: new Models(context),
      loginRequests: new LoginRequests(context, keys),
      images: new Images(context, { folder: join(resolve(config.data), 'images') }),
      workers: new EndpointWorkers(endpoints, fleet, store.workers, clock),
      s3Keys,
      webhookSecretFor: webhookSecretOf,
    };
    const noting = setInterval(
      () =>
        void Promise.all([authenticator.saveLastUsed(), s3Keys.saveLastUsed()]).catch((error: unknown) =>
          log.warn({ err: error }, 'the last uses of keys were not written down'),
        ),
      SAVE_LAST_USED_INTERVAL_MS,
    );
    noting.unref();

    const limits = config.rateLimits
      ? new JobRateLimits(clock, enabledJobLimits(config.jobLimits))
      : undefined;
    const jobs = new JobRoutes({
      queue,
      webhooks: new WebhookDeliveries({ store: store.jobs, clock, onDue: () => sender.wake() }),
      endpoints: directory,
      authenticator: authenticator,
      rateLimits: limits,
      log,
      noWorkersReason: (endpoint) => fleet.noWorkerReason(endpoint),
      workerCounts: (endpoint) => fleet.counts(endpoint),
      jobLogs: (job, signal) => fleet.jobLogs(job, signal),
    });
    const workers = new WorkerRoutes({
      queue,
      endpoints: directory,
      authenticator: authenticator,
      tokens,
      log,
    });
    const gateway: EndpointGateway = new EndpointGateway({
      pool: fleet.pool,
      authenticator: authenticator,
      endpoints: directory,
      log,
    });
    const openai = new OpenAiRoutes({
      queue,
      endpoints: directory,
      authenticator: authenticator,
      rateLimits: limits,
      log,
    });
    const domain = new WildcardDomain(config.domain, [config.publicUrl, config.workerUrl]);
    const traffic = new EndpointRouter({
      jobs,
      workers,
      queue,
      log,
      flash: new FlashUrlResolver(authenticator, flash),
      loadBalancing: { gateway, openai, endpoints: directory, domain },
      pods: new PodGateway({ portResolver: podPortResolver, domain, log }),
      terminals: new TerminalRoutes({
        terminals: new Terminals(context, { endpoints, engines: sites }),
        authenticator: authenticator,
        log,
      }),
    });
    const containers: WorkerUrlResolver = new WorkerUrlResolver({
      workerUrl: config.workerUrl,
      server: () => http.server,
      createServer: () =>
        createWorkerServer(traffic, {
          isPodToken: (key) => podTokens.podIdFromToken(key) !== undefined,
          serve: (request, response) => http.routing(request, response),
        }),
      log,
    });
    sweeper.start();
    sender.start();

    const s3 = new S3Routes({
      keys: s3Keys,
      authenticator: authenticator,
      clock,
      volumes: resources.volumes,
      contents: volumeContents,
      log,
    });
    const http: FastifyInstance = createHttpServer(
      {
        resources,
        artifacts,
        authenticator: authenticator,
        clock,
        log,
        endpointRouter: traffic,
        s3,
        origin: () => publicOrigin(config.publicUrl, http.server),
        ready: () => store.ping(),
      },
      { v1: config.v1, rateLimit: config.rateLimits ? config.rateLimit : undefined, graphql: config.graphql },
    );
    exposeWebhookCounts(http, () => sender.counts);
    return {
      http,
      rootKey,
      start: () => {
        store.leaderElection.start(
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
            void reconciler
              .start()
              .catch((error: unknown) =>
                log.error({ err: error }, 'pods cannot be looked after; restart Berth when this is mended'),
              );
          },
          () => {
            fleet.pause();
            reconciler.pause();
          },
        );
        docker?.start();
        void volumeContents.deleteRemovedData();
      },
      destroyConnections: async () => {
        http.server.closeAllConnections();
        traffic.destroyFastPathConnections();
        await containers.closeAllConnections();
      },
      close: async () => {
        clearInterval(noting);
        await docker?.close();
        await Promise.all([http.close(), containers.close()]);
        await reconciler.close();
        await fleet.close();
        await Promise.all([sweeper.close(), sender.close()]);
        await Promise.all([authenticator.saveLastUsed(), s3Keys.saveLastUsed()]);
        await store.close();
        lock?.release();
      },
    };
  } catch (error) {
    lock?.release();
    throw error;
  }
}
