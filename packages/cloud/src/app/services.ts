import { join, resolve } from 'node:path';
import { jupyterPassword } from '../compute/pods/jupyter-password.ts';
import { Billing } from '../metering/billing.ts';
import { JobSearcher } from '../queue/job-searcher.ts';
import { Accounts } from '../resources/accounts/accounts.ts';
import { Clusters } from '../resources/clusters/clusters.ts';
import type { EndpointCache } from '../resources/endpoints/endpoint-cache.ts';
import { EndpointJobs } from '../resources/endpoints/endpoint-jobs.ts';
import { EndpointWorkers } from '../resources/endpoints/endpoint-workers.ts';
import { Endpoints } from '../resources/endpoints/endpoints.ts';
import type { FlashApps } from '../resources/flash/flash-apps.ts';
import { Hub } from '../resources/hub/hub.ts';
import { ImageExpiry } from '../resources/images/image-expiry.ts';
import { ImageSnapshots } from '../resources/images/image-snapshots.ts';
import { Images } from '../resources/images/images.ts';
import { SharedImages } from '../resources/images/shared-images.ts';
import { ApiKeys } from '../resources/keys/api-keys.ts';
import { LoginRequests } from '../resources/keys/login-requests.ts';
import { S3Keys } from '../resources/keys/s3-keys.ts';
import { Models } from '../resources/models/models.ts';
import { Pods } from '../resources/pods/pods.ts';
import { Registries } from '../resources/registries/registries.ts';
import { RegistryDelegations } from '../resources/registries/registry-delegations.ts';
import type { AllServices } from '../resources/resources.ts';
import type { Secrets } from '../resources/secrets/secrets.ts';
import { AccountOverview } from '../resources/overview/account-overview.ts';
import type { Bucket } from '../resources/object-storage/bucket.ts';
import { System } from '../resources/system/system.ts';
import { Templates } from '../resources/templates/templates.ts';
import { VolumeContents } from '../resources/volumes/volume-contents.ts';
import { VolumeFiles } from '../resources/volumes/volume-files.ts';
import { Volumes } from '../resources/volumes/volumes.ts';
import { AccountEvents } from '../telemetry/events/account-events.ts';
import { History } from '../telemetry/history/history.ts';
import { EventFeed } from '../telemetry/events/event-feed.ts';
import { ChangeNotifier } from '../support/change-notifier.ts';
import { berthVersion, EXAMPLES } from '../support/program-files.ts';
import type { AccountRemoval } from '../resources/accounts/account-removal.ts';
import { checkEnvironment } from '../engines/engine-check.ts';
import { runMachineChecks } from '../engines/machine-checks.ts';
import { createAccountRemoval } from './create-account-services.ts';
import { engineChecks } from './engine-checks.ts';
import { imageLookupProblem, pruneImages } from '../engines/engine-images.ts';
import type { AccountLimits } from './create-account-services.ts';
import type { AppContext } from './app-context.ts';
import type { BackupServices } from './create-backups.ts';
import type { Compute } from './compute.ts';
import { createExternalVolumes } from './external-volumes.ts';
import type { Engines } from './engines.ts';
import type { Queue } from './queue.ts';
import type { Storage } from './storage.ts';

export interface ServicesDeps {
  storage: Storage;
  queue: Queue;
  engines: Engines;
  compute: Compute;
  endpointCache: EndpointCache;
  secrets: Secrets;
  flash: FlashApps;
  /** For files of all servers; undefined where they are in the database. */
  bucket: Bucket | undefined;
  limits: AccountLimits;
  backups: BackupServices;
}

/** The services behind every interface: one for each kind of resource. */
export interface Services {
  resources: AllServices;
  volumeContents: VolumeContents;
  imageExpiry: ImageExpiry;
  /** Undefined with a single server. */
  sharedImages: SharedImages | undefined;
  accountRemoval: AccountRemoval;
}

export function createServices(
  { config, log, clock, ids, events }: AppContext,
  { storage, queue, engines, compute, endpointCache, secrets, flash, bucket, backups, limits }: ServicesDeps,
): Services {
  const { store, context, masterKey } = storage;
  const { catalog } = engines;
  const dataDirectory = resolve(config.data);

  const templates = new Templates(context);
  const endpoints = new Endpoints(context, {
    catalog,
    templates,
    cache: endpointCache,
    acceleratesByDefault: config.accelerate,
    onRemoved: async (endpointId) => {
      await compute.workers.removeEndpoint(endpointId);
      await queue.queue.removeEndpoint(endpointId);
    },
  });
  const podChanges = new ChangeNotifier();
  events.subscribe('pod.changed', ({ podId }) => podChanges.notify(podId));
  const pods = new Pods(context, {
    catalog,
    templates,
    prices: config.prices,
    engines: engines.byDataCenter,
    changes: podChanges,
    jupyterPassword: (podId) => jupyterPassword(masterKey, podId),
  });
  const keys = new ApiKeys(context);
  const volumeContents = new VolumeContents(
    context,
    config.data,
    (error) =>
      log.warn(
        { err: error },
        'storage of a network volume could not be created or deleted; deleted data on disk is below ' +
          'volumes/.s3/.removed',
      ),
    ({ accountId, dataCenterId }) => engines.fileOwner(accountId, dataCenterId),
    createExternalVolumes(engines.byDataCenter),
  );
  const clusters = new Clusters(context, { pods, networkRange: config.clusterNetwork });
  const volumes = new Volumes(context, catalog, volumeContents);
  const imagesFolder = join(dataDirectory, 'images');
  const snapshots = new ImageSnapshots(imagesFolder);
  const sharedImages =
    config.database === ''
      ? undefined
      : new SharedImages({
          archives: store.imageArchives,
          bucket,
          snapshots,
          ids,
          onProblem: (what, error) => log.warn({ err: error }, what),
        });
  // What was deployed on another server becomes part of an endpoint right after.
  events.subscribe('endpoint.changed', ({ source }) => {
    if (source === 'other-server') void sharedImages?.sync();
  });
  const images = new Images(context, {
    folder: imagesFolder,
    snapshots,
    lookupProblem: (image, registry) => imageLookupProblem(engines.byDataCenter.values(), image, registry),
    pruneFetched: (unusedSince, inUse) => pruneImages(engines.byDataCenter.values(), unusedSince, inUse),
    credentials: (...wanted) => compute.pullCredentials.find(...wanted),
    ...(sharedImages !== undefined && { shared: sharedImages }),
  });
  const imageExpiry = new ImageExpiry({
    images,
    clock,
    log,
    keepDays: config.images.keepDays,
  });
  const accountRemoval = createAccountRemoval(
    { store, clusters, pods, endpoints, volumes, images, flash, log },
    limits,
  );
  const stopAll = async (accountId: string): Promise<void> => {
    for (const { id } of await store.endpoints.list(accountId))
      events.publish('endpoint.changed', { endpointId: id, source: 'request' });
    await pods.endAll(accountId, 'stop');
  };
  const accountEvents = new AccountEvents({
    feed: new EventFeed(ids.resource(), () => clock.now()),
    events,
    endpoint: (id) => endpointCache.find(id),
    latestRelease: async (id) => (await store.workers.listReleases(id, { limit: 1 }))[0],
    worker: (endpointId, workerId) => store.workers.findWorker(endpointId, workerId),
    pod: (id) => store.pods.findInAnyAccount(id),
    volume: (accountId, id) => store.volumes.find(accountId, id),
    now: () => clock.now(),
    log,
  });
  return {
    volumeContents,
    imageExpiry,
    sharedImages,
    accountRemoval,
    resources: {
      accounts: new Accounts(context, {
        directory: limits.directory,
        quotas: limits.quotas,
        removal: accountRemoval,
        stopAll,
      }),
      keys,
      templates,
      endpoints,
      pods,
      clusters,
      volumes,
      registries: new Registries(context),
      delegations: new RegistryDelegations(context),
      secrets,
      catalog,
      hub: new Hub(EXAMPLES),
      billing: new Billing(store.ledger, clock),
      flash,
      models: new Models(context),
      loginRequests: new LoginRequests(context, keys),
      images,
      volumeFiles: new VolumeFiles(context, volumes, volumeContents),
      system: new System({
        store,
        catalog,
        backupSchedule: backups.backupSchedule,
        clock,
        version: berthVersion(),
        database: config.database === '' ? 'sqlite' : 'postgres',
        isLeading: () => compute.isStarted(),
        runChecks: () => runMachineChecks(dataDirectory, checkEnvironment(process.env, config), engineChecks),
      }),
      workers: new EndpointWorkers(context, { endpoints, liveWorkers: compute.workers }),
      jobs: new EndpointJobs(context, {
        endpoints,
        queue: queue.queue,
        search: new JobSearcher({ store: store.jobs, clock }),
      }),
      events: accountEvents,
      history: new History({
        store: store.history,
        ledger: store.ledger,
        clock,
        keepDays: config.history.days,
      }),
      overview: new AccountOverview({
        store: store.overview,
        workerCounts: (endpoint) => compute.workers.counts(endpoint),
      }),
      s3Keys: new S3Keys(context),
      backups: backups.backups,
      backupSchedule: backups.backupSchedule,
      webhookSecretFor: (accountId) => queue.webhookSecretFor(accountId),
    },
  };
}
