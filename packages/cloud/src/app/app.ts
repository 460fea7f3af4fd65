import type { FastifyInstance } from 'fastify';
import { ROOT_ACCOUNT_ID } from '../domain/caller.ts';
import type { CloudEventBus } from '../domain/events.ts';
import type { MetricsListener } from '../http/metrics-listener.ts';
import { signInUrl } from '../http/rest-v2/sessions.v2.routes.ts';
import { endPackageScope } from '../engines/process/package-scope.ts';
import { applyPrices } from '../metering/repricing.ts';
import { EndpointCache } from '../resources/endpoints/endpoint-cache.ts';
import { FlashApps } from '../resources/flash/flash-apps.ts';
import { FlashArtifacts } from '../resources/flash/flash-artifacts.ts';
import { Secrets } from '../resources/secrets/secrets.ts';
import { lockDataDirectory } from '../store/sqlite/data-directory-lock.ts';
import type { Clock } from '../support/clock.ts';
import type { Config } from '../support/config/config.ts';
import { openDataDirectory } from '../support/data-directory.ts';
import { DiskReserve } from '../support/disk-reserve.ts';
import { DiskSpace } from '../support/disk-space.ts';
import { EventBus } from '../support/event-bus.ts';
import { StoreMetrics } from '../telemetry/metrics/store-metrics.ts';
import { randomIds } from '../support/ids.ts';
import type { Ids } from '../support/ids.ts';
import type { Log } from '../support/log.ts';
import { SteadyClock } from '../support/steady-clock.ts';
import { createAccountLimits } from './create-account-services.ts';
import type { AppContext } from './app-context.ts';
import { createAuth } from './auth.ts';
import { createBackups } from './create-backups.ts';
import { runClockSync } from './run-clock-sync.ts';
import { createCompute } from './compute.ts';
import { createEngines } from './engines.ts';
import { createHttp } from './http.ts';
import { createQueue } from './queue.ts';
import { Peers } from './peers.ts';
import type { RootKey } from './root-key.ts';
import { ServerAddress } from './server-address.ts';
import { createTelemetry } from './telemetry.ts';
import { connectWakeups } from './server-wakeups.ts';
import { createServices } from './services.ts';
import { createInstallationFiles } from './shared-files.ts';
import { openStorage } from './storage.ts';
import { createTls } from './tls.ts';
import { createTraces } from './traces.ts';
import type { Tls } from './tls.ts';

export interface AppOptions {
  config: Config;
  log: Log;
  clock?: Clock;
  ids?: Ids;
}

export interface App {
  http: FastifyInstance;
  rootKey: RootKey;
  /** The URL at which clients reach it. */
  publicOrigin(): string;
  tls: Tls | undefined;
  metricsListener: MetricsListener | undefined;
  /** A link that signs in to the console once, with the root key. */
  signInUrl(): Promise<string>;
  /**
   * Adopts the instances that run and starts to manage them. Call it when the server listens: they must reach
   * it.
   */
  start(): void;
  close(): Promise<void>;
  /** Closes the connections of requests that are still being answered. */
  destroyConnections(): Promise<void>;
}

/** Opens the data directory and builds the server. With SQLite one process at a time may use a directory. */
export async function createApp({
  config,
  log,
  clock = new SteadyClock(),
  ids = randomIds,
}: AppOptions): Promise<App> {
  openDataDirectory(config.data);
  const lock = config.database === '' ? lockDataDirectory(config.data) : undefined;
  try {
    endPackageScope(config.data);
    const disk = new DiskSpace(new DiskReserve(config.data, config.diskReserve), log);
    const app = await composeApp({ config, log, clock, ids, events: createEvents(log), disk });
    return {
      ...app,
      close: async () => {
        await app.close();
        lock?.release();
      },
    };
  } catch (error) {
    lock?.release();
    throw error;
  }
}

function createEvents(log: Log): CloudEventBus {
  return new EventBus((error, event) => log.error({ err: error, event }, 'an event listener failed'));
}

/**
 * The one place where the parts are connected. Each part is built from those before it; events go the other
 * way.
 */
async function composeApp(app: AppContext): Promise<App> {
  const { config, log, clock, events, disk } = app;
  const address = new ServerAddress(config.publicUrl);
  const storeMetrics = new StoreMetrics();
  const storage = await openStorage(app, storeMetrics);
  const { store, context, clockSync } = storage;
  const auth = createAuth(app, storage);
  const traces = await createTraces(app, storage);
  const queue = await createQueue(app, storage, traces?.tracing);
  const peers = new Peers(app, storage, address);
  const files = createInstallationFiles(app, storage);
  const engines = await createEngines(app, { ...storage, environments: files.environments }, address, peers);
  const limits = await createAccountLimits(app, storage, engines, queue.webhookSecretFor);
  queue.limitBy(limits.directory);
  const endpointCache = new EndpointCache(store.endpoints, clock);
  events.subscribe('endpoint.changed', ({ endpointId }) => endpointCache.invalidate(endpointId));
  const artifacts = new FlashArtifacts({
    files: files.artifacts,
    masterKey: storage.masterKey,
    clock,
    origin: () => address.publicOrigin,
  });
  const base = {
    storage,
    auth,
    engines,
    endpointCache,
    secrets: new Secrets(context),
    flash: new FlashApps(context, artifacts),
    bucket: files.bucket,
  };
  const compute = createCompute(app, { ...base, queue: queue.queue, address, limits, peers });
  const telemetry = createTelemetry(app, storage, engines, compute);
  const backups = createBackups(app, storage);
  await backups.backups.removeLeftovers();
  const services = createServices(app, { ...base, queue, compute, backups, limits });
  const tls = await createTls(app, store, address);
  const http = createHttp(app, {
    ...base,
    queue,
    compute,
    services,
    artifacts,
    address,
    limits,
    tls,
    telemetry,
    tracing: traces?.tracing,
  });
  traces?.expose(http.registry);
  storeMetrics.expose(http.registry);
  connectWakeups(events, store.wakeups);

  const lead = (): void => {
    if (config.database !== '') log.info('this server is the leader now: it starts and stops instances');
    applyPrices({ store, prices: config.prices, clock }).catch((error: unknown) =>
      log.error(
        { err: error },
        'the configured prices could not be applied; fix the cause and restart Berth',
      ),
    );
    compute.start();
    limits.start(services.accountRemoval);
    if (clockSync !== undefined) clockSync.isLeading = true;
    backups.backupSchedule.start();
    tls?.lead();
    telemetry.start();
  };
  const follow = (): void => {
    if (compute.isStarted()) log.info('this server is no longer the leader');
    limits.stop();
    compute.pause();
    if (clockSync !== undefined) clockSync.isLeading = false;
    backups.backupSchedule.pause();
    tls?.follow();
    telemetry.pause();
  };
  const clockChecks = clockSync && runClockSync(clockSync, log);
  return {
    http: http.server,
    rootKey: storage.rootKey,
    publicOrigin: () => address.publicOrigin,
    tls,
    metricsListener: http.metricsListener,
    signInUrl: async () => {
      const key = await store.keys.findRoot();
      const { token } = await auth.sessions.links.create({
        accountId: ROOT_ACCOUNT_ID,
        keyId: key?.id ?? null,
      });
      return signInUrl(address.publicOrigin, token);
    },
    start: () => {
      disk.start();
      auth.start();
      tls?.start();
      queue.start();
      peers.start();
      store.leaderElection.start(lead, follow);
      compute.takeShards();
      engines.start((dataCenterId) => compute.connectDataCenter(dataCenterId));
      services.imageExpiry.start();
      void services.volumeContents.deleteRemovedData();
      services.sharedImages?.start();
      files.start();
    },
    destroyConnections: async () => {
      http.destroyConnections();
      await engines.destroyConnections();
    },
    close: async () => {
      disk.close();
      // From here on answers close their connections.
      const answered = http.server.close();
      if (config.database === '') limits.stop();
      else {
        // The next server shall lead before this one has closed the rest.
        follow();
        await Promise.all([store.leaderElection.resign(), store.workerShards?.election.resign()]);
      }
      await services.imageExpiry.close();
      await services.sharedImages?.close();
      await files.close();
      services.resources.events.close();
      await engines.stopDiscovery();
      await tls?.close();
      await Promise.all([answered, http.metricsListener?.close(), engines.closeWorkerServer()]);
      await telemetry
        .close()
        .catch((error: unknown) => log.warn({ err: error }, 'the last minute of the history is lost'));
      await compute.close();
      await engines.close();
      await queue.close();
      await traces?.close();
      await auth.close();
      await backups.backupSchedule.close();
      await clockChecks?.close();
      await peers.close();
      await store.close();
    },
  };
}
