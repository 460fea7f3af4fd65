import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';
import { EndpointRouter } from '../http/endpoint-router.ts';
import type { EndpointRouterDeps } from '../http/endpoint-router.ts';
import { ConnectionLimit, defaultMaxConnections } from '../http/connection-limit.ts';
import { FastPathRoutes } from '../http/fast-path/fast-path-routes.ts';
import { EndpointGateway } from '../http/gateway/endpoint-gateway.ts';
import { PodGateway } from '../http/gateway/pod-gateway.ts';
import { WildcardDomain } from '../http/gateway/wildcard-domain.ts';
import { createHttpServer, createWorkerServer } from '../http/http-server.ts';
import { FlashUrlResolver } from '../http/jobs/flash-url-resolver.ts';
import { enabledJobLimits, JobRateLimits } from '../http/jobs/job-rate-limits.ts';
import { JobRoutes } from '../http/jobs/jobs.routes.ts';
import { exposeHeldRequests, exposeReadiness, exposeWebhookCounts, HttpMetrics } from '../http/metrics.ts';
import { MetricsListener } from '../http/metrics-listener.ts';
import { OpenAiRoutes } from '../http/openai/openai.routes.ts';
import { RequestObserver } from '../http/request-observer.ts';
import { SnapshotUrls } from '../auth/snapshot-urls.ts';
import { S3Routes } from '../http/s3/s3.routes.ts';
import { TerminalRoutes } from '../http/terminal/terminal.routes.ts';
import { WorkerRoutes } from '../http/workers/workers.routes.ts';
import type { EndpointCache } from '../resources/endpoints/endpoint-cache.ts';
import type { FlashArtifacts } from '../resources/flash/flash-artifacts.ts';
import { PodPortResolver } from '../resources/pods/pod-port-resolver.ts';
import type { JobTracing } from '../domain/tracing.ts';
import { Terminals } from '../resources/terminals/terminals.ts';
import { exposeQuotaUse } from '../telemetry/metrics/quota-metrics.ts';
import { CONSOLE_FILES } from '../support/program-files.ts';
import type { Config } from '../support/config/config.ts';
import type { AppContext } from './app-context.ts';
import type { AccountLimits } from './create-account-services.ts';
import type { Auth } from './auth.ts';
import type { Compute } from './compute.ts';
import type { Engines } from './engines.ts';
import type { Queue } from './queue.ts';
import { sharedRates } from './shared-rates.ts';
import type { ServerAddress } from './server-address.ts';
import type { Services } from './services.ts';
import type { Storage } from './storage.ts';
import type { Telemetry } from './telemetry.ts';
import type { Tls } from './tls.ts';

export interface HttpDeps {
  storage: Storage;
  auth: Auth;
  queue: Queue;
  engines: Engines;
  compute: Compute;
  services: Services;
  endpointCache: EndpointCache;
  artifacts: FlashArtifacts;
  address: ServerAddress;
  limits: AccountLimits;
  telemetry: Telemetry;
  tracing: JobTracing | undefined;
  tls: Tls | undefined;
}

/** The HTTP server with every interface. It does not listen yet. */
export interface Http {
  server: FastifyInstance;
  registry: Registry;
  /** The second address of /metrics, if one is configured. */
  metricsListener: MetricsListener | undefined;
  destroyConnections(): void;
}

export function createHttp(app: AppContext, deps: HttpDeps): Http {
  const { config, log, clock } = app;
  const { storage, auth, queue, services, artifacts, address, limits, tls, telemetry } = deps;
  const { authenticator, openAccesses, podTokens } = auth;
  const metrics = new HttpMetrics();
  const requestObserver = new RequestObserver(log, metrics);
  const endpointDeps = { ...endpointRouterDeps(app, deps, metrics), requestObserver };
  const endpointRouter = new EndpointRouter(endpointDeps);
  const connectionLimit = new ConnectionLimit(
    {
      max: config.maxConnections === 0 ? defaultMaxConnections() : config.maxConnections,
      maxPerAccount: config.maxConnectionsPerAccount,
      countRequest: (accountId) => limits.requests.count(accountId),
    },
    log,
  );
  const ready = async (): Promise<void> => {
    if (config.database === '') app.disk.checkRoom();
    await storage.store.ping();
  };
  const server = createHttpServer(
    {
      resources: services.resources,
      artifacts,
      snapshotUrls: new SnapshotUrls(storage.masterKey),
      authenticator,
      sessions: auth.sessions,
      consoleFiles: CONSOLE_FILES,
      openAccesses,
      clock,
      log,
      metrics,
      endpointRouter,
      fastPath: config.fastPath
        ? new FastPathRoutes({ ...endpointDeps, isClosing: () => endpointRouter.closing })
        : undefined,
      s3: new S3Routes({
        credentials: auth.s3Credentials,
        authenticator,
        openAccesses,
        clock,
        volumes: services.resources.volumes,
        contents: services.volumeContents,
        log,
        requestObserver,
      }),
      connectionLimit,
      tls: tls?.acceptor,
      origin: () => address.publicOrigin,
      rateShare: sharedRates('rest', storage.store.wakeups),
      ready,
    },
    {
      v1: config.v1,
      rateLimit: config.rateLimits ? config.rateLimit : undefined,
      graphql: config.graphql,
      isMetricsOpen: () => isMetricsOpen(config, limits.directory.list().length > 1),
    },
  );
  exposeWebhookCounts(metrics.registry, () => queue.webhookSender.counts);
  telemetry.expose(metrics.registry);
  exposeQuotaUse(metrics.registry, () => limits.quotas.ratios());
  exposeReadiness(metrics.registry, ready);
  address.attach({
    server: server.server,
    tls,
    createWorkerServer: () =>
      createWorkerServer(
        endpointRouter,
        {
          isPodToken: (key) => podTokens.podIdFromToken(key) !== undefined,
          serve: (request, response) => server.routing(request, response),
        },
        connectionLimit,
      ),
  });
  const metricsListener =
    config.metrics.listen === '' ? undefined : new MetricsListener(config.metrics.listen, metrics);
  return {
    server,
    registry: metrics.registry,
    metricsListener,
    destroyConnections: () => {
      server.server.closeAllConnections();
      metricsListener?.closeAllConnections();
    },
  };
}

/** The requests to endpoints, pods and terminals, which do not pass through the web framework. */
function endpointRouterDeps(
  { config, log, clock, events }: AppContext,
  { storage, auth, queue: { queue, webhooks }, engines, compute, services, endpointCache, tracing }: HttpDeps,
  metrics: HttpMetrics,
): EndpointRouterDeps {
  const { context, store } = storage;
  const { endpoints, flash } = services.resources;
  const rateLimits = config.rateLimits
    ? new JobRateLimits(clock, enabledJobLimits(config.jobLimits), sharedRates('jobs', store.wakeups))
    : undefined;
  const { authenticator, openAccesses } = auth;
  const shared = { authenticator, openAccesses, endpoints: endpointCache, log, tracing };
  const domain = new WildcardDomain(config.domain, [config.publicUrl, config.workerUrl]);
  const gateway = new EndpointGateway({
    ...shared,
    pool: compute.pool,
    onHeld: (milliseconds) => metrics.observeHold(milliseconds / 1000),
  });
  exposeHeldRequests(metrics.registry, () => gateway.held);
  events.subscribe('endpoint.changed', ({ endpointId }) => gateway.refreshEndpoint(endpointId));
  events.subscribe('endpoint.removed', ({ endpointId }) => gateway.refreshEndpoint(endpointId));
  const portResolver = new PodPortResolver({ store: store.pods, engines: engines.byDataCenter, clock });
  events.subscribe('pod.changed', ({ podId }) => portResolver.invalidate(podId));
  return {
    jobs: new JobRoutes({
      ...shared,
      queue,
      webhooks,
      rateLimits,
      noWorkersReason: (endpoint) => compute.workers.noWorkerReason(endpoint),
      workerCounts: (endpoint) => compute.workers.counts(endpoint),
      startPhases: (job) => compute.workers.startPhasesOf(job),
      jobLogs: (job, signal) => compute.workers.jobLogs(job, signal),
    }),
    workers: new WorkerRoutes({ ...shared, queue, tokens: auth.workerTokens }),
    queue,
    openAccesses,
    log,
    flash: new FlashUrlResolver(authenticator, flash),
    loadBalancing: {
      gateway,
      openai: new OpenAiRoutes({ ...shared, queue, rateLimits }),
      endpoints: endpointCache,
      domain,
    },
    peers: engines.server,
    pods: new PodGateway({ portResolver, domain, log, tracing }),
    terminals: new TerminalRoutes({
      terminals: new Terminals(context, { endpoints, engines: engines.byDataCenter }),
      authenticator,
      openAccesses,
      log,
    }),
  };
}

/**
 * The metrics need a key, unless the operator opens them or the server listens on loopback alone. Where other
 * accounts exist, loopback needs one too: their code runs on this machine and can reach it.
 */
function isMetricsOpen({ host, metrics }: Config, hasOtherAccounts: boolean): boolean {
  if (metrics.access !== 'auto') return metrics.access === 'open';
  return !hasOtherAccounts && (host === 'localhost' || host === '::1' || host.startsWith('127.'));
}
