import { randomUUID } from 'node:crypto';
import type { IncomingMessage, RequestListener, Server, ServerOptions } from 'node:http';
import Fastify, { LogController } from 'fastify';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { createServer } from '../support/node-http.ts';
import type { Authenticator } from '../auth/authenticator.ts';
import type { OpenAccesses } from '../auth/open-access.ts';
import type { Sessions } from '../auth/sessions.ts';
import type { FlashArtifacts } from '../resources/flash/flash-artifacts.ts';
import type { AllServices } from '../resources/resources.ts';
import { ROOT_ACCOUNT_ID } from '../domain/caller.ts';
import type { Clock } from '../support/clock.ts';
import { BerthError } from '../support/errors.ts';
import type { RateShare } from '../support/rate-limiter.ts';
import { DOCS } from '../support/program-files.ts';
import { bearerKey } from '../auth/bearer.ts';
import { toBerthError } from './http.errors.ts';
import { UpgradeDetector } from './gateway/upgrade-detector.ts';
import { discardBody } from './body-turns.ts';
import { ConnectionLimitedServer } from './connection-limit.ts';
import type { ConnectionLimit } from './connection-limit.ts';
import { ConsoleRoutes } from './console/console.routes.ts';
import { applySession } from './console/session-cookie.ts';
import { artifactRoutes } from './artifacts.routes.ts';
import { docsRoutes } from './docs/docs.routes.ts';
import { graphqlRoutes } from './graphql/graphql.routes.ts';
import { healthRoutes } from './health.routes.ts';
import { FastPathServer } from './fast-path/fast-path-server.ts';
import type { FastPathHandler } from './fast-path/fast-path-connection.ts';
import { loginPageRoutes } from './login-page.ts';
import { handleClientError } from './long-uploads.ts';
import type { HttpMetrics } from './metrics.ts';
import { convertToOriginForm } from './request-target.ts';
import type { TlsAcceptor } from './tls/tls-acceptor.ts';
import { restV1Api } from './rest-v1/rest-v1.routes.ts';
import type { RestV1Options } from './rest-v1/rest-v1.routes.ts';
import { sendV2Error } from './rest-v2/rest-v2.errors.ts';
import { restV2Api } from './rest-v2/rest-v2.routes.ts';
import { restApiRoutes } from './rest/rest-api.routes.ts';
import { RestRateLimits } from './rest/rest-rate-limits.ts';
import type { S3Routes } from './s3/s3.routes.ts';
import { isSnapshotRequest, snapshotRoutes } from './snapshots.routes.ts';
import type { SnapshotUrls } from '../auth/snapshot-urls.ts';
import type { EndpointRouter } from './endpoint-router.ts';
import { EndpointUrls } from './endpoint-urls.ts';

/**
 * Clients keep idle connections for up to 15 s, and some do not retry when one is closed: the server waits
 * much longer.
 */
const KEEP_ALIVE_MS = 75_000;
/** Workers name hundreds of jobs in one URL. */
const MAX_HEADER_BYTES = 160 * 1024;
const MAX_PARAM_LENGTH = 500;
/** A slow upload to a load balanced worker may have to wait for the worker first. */
const REQUEST_TIMEOUT_MS = 660_000;

/**
 * Requests are checked by the schemas of rest/ and of GraphQL, never by Fastify. Without this it would load
 * two compilers of JSON schemas at every start: 100 modules, 50 ms without a compile cache.
 */
const NO_ROUTE_SCHEMAS = {
  compilersFactory: { buildValidator: refuseRouteSchema, buildSerializer: refuseRouteSchema },
};

export interface HttpServerOptions {
  v1: RestV1Options;
  /** Requests per key and time window; undefined turns the limits off. */
  rateLimit: { perMinute: number; perHour: number; perDay: number } | undefined;
  graphql: { maxDepth: number; maxFields: number };
  /**
   * Whether everybody who reaches this server may read /metrics now; otherwise keys of the root account may.
   */
  isMetricsOpen?(): boolean;
}

export interface HttpServerDeps {
  resources: AllServices;
  artifacts: FlashArtifacts;
  snapshotUrls: SnapshotUrls;
  authenticator: Authenticator;
  sessions: Sessions;
  /** The folder with the built console. */
  consoleFiles: string;
  openAccesses: OpenAccesses;
  clock: Clock;
  log: FastifyBaseLogger;
  metrics: HttpMetrics;
  /** The requests to endpoints and pods, which do not pass through the web framework. */
  endpointRouter: EndpointRouter;
  /** If given, reads the small and plain requests of the job API in place of Node's HTTP. */
  fastPath: FastPathHandler | undefined;
  /** The objects of network volumes, which do not pass through the web framework either. */
  s3: S3Routes;
  connectionLimit: ConnectionLimit;
  /** If given, HTTPS is spoken at the port. */
  tls?: TlsAcceptor | undefined;
  /** The URL under which clients reach this server. */
  origin(): string;
  ready(): Promise<void>;
  /** Where several servers count requests together. */
  rateShare?: RateShare;
}

/** The one server in front of all interfaces. */
export function createHttpServer(
  {
    resources,
    artifacts,
    snapshotUrls,
    authenticator,
    sessions,
    consoleFiles,
    openAccesses,
    clock,
    log,
    metrics,
    endpointRouter,
    fastPath,
    s3,
    connectionLimit,
    tls,
    origin,
    ready,
    rateShare,
  }: HttpServerDeps,
  { v1, rateLimit, graphql, isMetricsOpen = () => true }: HttpServerOptions,
): FastifyInstance {
  const v1Routes = restV1Api(resources, v1);
  const v2Routes = restV2Api(
    { ...resources, sessions, origin },
    new EndpointUrls(origin),
    rateLimit === undefined ? undefined : createRestRateLimits(rateLimit, clock, rateShare),
  );
  const console = new ConsoleRoutes({ files: consoleFiles, authenticator, sessions, origin });
  const app = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    serverFactory: (handler) =>
      createRoutedServer(
        endpointRouter,
        (request, response) => s3.serve(request, response, () => handler(request, response)),
        (request) => applySession(request, origin),
        fastPath,
        connectionLimit,
        tls,
      ),
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    schemaController: NO_ROUTE_SCHEMAS,
    clientErrorHandler: handleClientError,
    frameworkErrors: (error, request, reply) => {
      const routes =
        [v1Routes, v2Routes].find(({ prefix }) => request.url.startsWith(`${prefix}/`)) ?? v2Routes;
      reply.headers({ 'x-request-id': request.id, ...routes.headers?.() });
      void routes.sendError(reply, routes.disabledError?.() ?? toBerthError(error, request.log, request.id));
    },
  });
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
  });
  let closing = false;
  app.addHook('preClose', async () => {
    closing = true;
    endpointRouter.close();
    s3.close();
  });
  app.addHook('onSend', async (request, reply) => {
    if (!request.raw.complete) {
      // The response comes before the end of the body. Closing on a client that still sends would lose it:
      // the rest is read and discarded.
      reply.removeHeader('connection');
      discardBody(request.raw);
    } else if (closing) {
      // An open connection would keep the server from stopping.
      reply.header('connection', 'close');
    }
  });
  app.addHook('onResponse', async (request, reply) => {
    // The path alone: a query string may carry a key.
    request.log.debug(
      {
        method: request.method,
        path: request.url.split('?')[0],
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime),
      },
      'request',
    );
    // The pattern, not the path: ids would make a series of each request.
    metrics.observe(
      request.method,
      request.routeOptions.url ?? 'none',
      reply.statusCode,
      reply.elapsedTime / 1000,
    );
  });
  app.setErrorHandler((error, request, reply) =>
    sendV2Error(reply, toBerthError(error, request.log, request.id)),
  );
  app.setNotFoundHandler((request, reply) =>
    console.handles(request)
      ? console.sendPage(request, reply)
      : sendV2Error(
          reply,
          new BerthError('no-route', 'no such address; the APIs are at /v1, /v2, /graphql and /s3'),
        ),
  );

  healthRoutes(app, {
    ready,
    metrics,
    checkMetricsKey: async (key) => {
      if (!isMetricsOpen()) await checkOperatorKey(authenticator, key);
    },
  });
  void app.register(restApiRoutes(v1Routes, authenticator, openAccesses), { prefix: v1Routes.prefix });
  void app.register(restApiRoutes(v2Routes, authenticator, openAccesses), { prefix: v2Routes.prefix });
  console.register(app);
  loginPageRoutes(app);
  docsRoutes(app, DOCS);
  void app.register(artifactRoutes(artifacts));
  void app.register(snapshotRoutes({ images: resources.images, urls: snapshotUrls }));
  void app.register(graphqlRoutes(resources, authenticator, graphql));
  return app;
}

function refuseRouteSchema(): never {
  throw new Error('routes have no schema of Fastify: describe the operation in rest/ instead');
}

async function checkOperatorKey(authenticator: Authenticator, key: string | undefined): Promise<void> {
  const { accountId } = await authenticator.authenticate(key);
  if (accountId !== ROOT_ACCOUNT_ID)
    throw new BerthError('forbidden', 'the metrics cover all accounts; they need a key of the root account');
}

/** What pods may do on the worker server. */
export interface PodSelfService {
  /** Whether this is the token of a pod. */
  isPodToken(key: string | undefined): boolean;
  serve: RequestListener;
}

/**
 * A server for workers and pods alone: the endpoints, the deployed folders that they run, and what a pod may
 * do to itself. It does not listen yet.
 */
export function createWorkerServer(
  router: EndpointRouter,
  pods?: PodSelfService,
  limit?: ConnectionLimit,
): Server {
  return createRoutedServer(
    router,
    (request, response) => {
      const queryKey = (request.url ?? '').includes('api_key=')
        ? new URLSearchParams(request.url?.split('?')[1]).get('api_key')
        : null;
      const isAllowed =
        isSnapshotRequest(request) ||
        pods?.isPodToken(bearerKey(request.headers.authorization) ?? queryKey ?? undefined) === true;
      if (pods !== undefined && isAllowed) return pods.serve(request, response);
      const body = JSON.stringify({
        title: 'Forbidden',
        status: 403,
        detail: "workers reach only their endpoints here; the whole API is at Berth's own address",
      });
      response
        .writeHead(403, {
          'content-type': 'application/problem+json',
          'content-length': Buffer.byteLength(body),
        })
        .end(body);
    },
    () => undefined,
    undefined,
    limit,
  );
}

function createRoutedServer(
  router: EndpointRouter,
  handler: RequestListener,
  prepare: (request: IncomingMessage) => void,
  fastPath?: FastPathHandler,
  limit?: ConnectionLimit,
  tls?: TlsAcceptor,
): Server {
  const upgrades = new UpgradeDetector();
  const options: ServerOptions = {
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    shouldUpgradeCallback: (request: IncomingMessage) => upgrades.shouldUpgrade(request),
  };
  const server =
    fastPath !== undefined
      ? new FastPathServer(options, fastPath, limit, tls)
      : limit === undefined
        ? createServer(options)
        : new ConnectionLimitedServer(options, limit, tls);
  server.on('request', (request, response) => {
    upgrades.trackResponse(request, response);
    convertToOriginForm(request);
    prepare(request);
    router.serve(request, response, () => handler(request, response));
  });
  server.on('checkContinue', (request, response) => {
    upgrades.trackResponse(request, response);
    convertToOriginForm(request);
    prepare(request);
    const next = (): void => {
      response.writeContinue();
      handler(request, response);
    };
    router.serve(request, response, next, true);
  });
  server.on('upgrade', (request, socket, head) => {
    convertToOriginForm(request);
    prepare(request);
    void router.upgrade(request, socket, head);
  });
  return server;
}

function createRestRateLimits(
  { perMinute, perHour, perDay }: NonNullable<HttpServerOptions['rateLimit']>,
  clock: Clock,
  share: RateShare | undefined,
): RestRateLimits {
  return new RestRateLimits(
    [
      { name: 'minute', seconds: 60, quota: perMinute },
      { name: 'hour', seconds: 3600, quota: perHour },
      { name: 'day', seconds: 86_400, quota: perDay },
    ],
    clock,
    share,
  );
}
