import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import Fastify, { LogController } from 'fastify';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { Gate } from '../resources/keys/gate.ts';
import type { Artifacts } from '../resources/flash/artifacts.ts';
import type { AllResources } from '../resources/resources.ts';
import type { Clock } from '../support/clock.ts';
import { BerthError } from '../support/errors.ts';
import { bearerKey } from './bearer.ts';
import { asBerthError } from './failures.ts';
import { Upgrades } from './gateway/upgrades.ts';
import { artifactRoutes } from './artifacts.ts';
import { graphqlFace } from './graphql/face.ts';
import { healthRoutes } from './health.ts';
import { openLanes } from './lane/lanes.ts';
import { loginPage } from './login-page.ts';
import { endBadConnection } from './long-uploads.ts';
import { createMetrics } from './metrics.ts';
import { takeOriginForm } from './origin-form.ts';
import { restV1 } from './rest-v1/face.ts';
import type { V1Options } from './rest-v1/face.ts';
import { failV2 } from './rest-v2/failures.ts';
import { restV2 } from './rest-v2/face.ts';
import { restFace } from './rest/face.ts';
import { RateLimiter } from './rest/rate-limit.ts';
import type { S3Face } from './s3/face.ts';
import type { EndpointTraffic } from './traffic.ts';
import { Urls } from './urls.ts';

/** Clients keep idle connections for up to 15 s and some resend nothing when one is gone: the server waits much longer. */
const KEEP_ALIVE_MS = 75_000;
/** Workers name hundreds of jobs in one address. */
const MAX_HEADER_BYTES = 160 * 1024;
const MAX_PARAM_LENGTH = 500;
/** A slow upload to a balanced worker may wait for one first. */
const REQUEST_WITHIN_MS = 660_000;

export interface HttpOptions {
  v1: V1Options;
  /** Requests per key and window; undefined switches limits off. */
  rateLimit: { perMinute: number; perHour: number; perDay: number } | undefined;
  graphql: { maxDepth: number; maxFields: number };
}

export interface HttpParts {
  resources: AllResources;
  artifacts: Artifacts;
  gate: Gate;
  clock: Clock;
  log: FastifyBaseLogger;
  /** What belongs to endpoints and goes past the web framework. */
  traffic: EndpointTraffic;
  /** Likewise the objects of network volumes. */
  s3: S3Face;
  /** Where clients reach this server. */
  origin(): string;
  ready(): Promise<void>;
}

/** The one server in front of all interfaces. */
export function createHttpServer(
  { resources, artifacts, gate, clock, log, traffic, s3, origin, ready }: HttpParts,
  { v1, rateLimit, graphql }: HttpOptions,
): FastifyInstance {
  const v1Face = restV1(resources, v1);
  const v2Face = restV2(
    resources,
    new Urls(origin),
    rateLimit === undefined ? undefined : limiterOf(rateLimit, clock),
  );
  const app = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    serverFactory: (handler) =>
      serverWith(traffic, (request, response) =>
        s3.serve(request, response, () => handler(request, response)),
      ),
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    clientErrorHandler: endBadConnection,
    frameworkErrors: (error, request, reply) => {
      const face = [v1Face, v2Face].find(({ prefix }) => request.url.startsWith(`${prefix}/`)) ?? v2Face;
      reply.headers({ 'x-request-id': request.id, ...face.headers?.() });
      void face.fail(reply, face.closed?.() ?? asBerthError(error, request.log, request.id));
    },
  });
  const metrics = createMetrics();
  metrics.observe(app);
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
  });
  let closing = false;
  app.addHook('preClose', async () => {
    closing = true;
    traffic.close();
    s3.close();
  });
  app.addHook('onSend', async (request, reply) => {
    if (!request.raw.complete) {
      // An answer that comes before the end of the body. To close on a client that still sends would lose it: the rest is read and dropped.
      reply.removeHeader('connection');
      request.raw.resume();
    } else if (closing) {
      // A connection that is kept would keep the server from ending.
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
  });
  app.setErrorHandler((error, request, reply) => failV2(reply, asBerthError(error, request.log, request.id)));
  app.setNotFoundHandler((_request, reply) =>
    failV2(
      reply,
      new BerthError('no-route', 'no such address; the interfaces are at /v1, /v2, /graphql and /s3'),
    ),
  );

  healthRoutes(app, { ready, registry: metrics.registry });
  void app.register(restFace(v1Face, gate), { prefix: v1Face.prefix });
  void app.register(restFace(v2Face, gate), { prefix: v2Face.prefix });
  loginPage(app);
  void app.register(artifactRoutes(artifacts));
  void app.register(graphqlFace(resources, gate, graphql));
  return app;
}

/** Those who may do more here than workers. */
export interface PodVisitors {
  /** Whether this is a pod's own key. */
  isPod(key: string | undefined): boolean;
  serve: RequestListener;
}

/** For workers and pods alone: what belongs to endpoints, and what a pod may do to itself. Not listening yet. */
export function createWorkerServer(traffic: EndpointTraffic, pods?: PodVisitors): Server {
  return serverWith(traffic, (request, response) => {
    const asked = (request.url ?? '').includes('api_key=')
      ? new URLSearchParams(request.url?.split('?')[1]).get('api_key')
      : null;
    if (pods?.isPod(bearerKey(request.headers.authorization) ?? asked ?? undefined) === true)
      return pods.serve(request, response);
    const body = JSON.stringify({
      title: 'Forbidden',
      status: 403,
      detail:
        'workers reach their endpoints here and nothing else; the whole interface is where Berth itself listens',
    });
    response
      .writeHead(403, {
        'content-type': 'application/problem+json',
        'content-length': Buffer.byteLength(body),
      })
      .end(body);
  });
}

function serverWith(traffic: EndpointTraffic, handler: RequestListener): Server {
  const upgrades = new Upgrades();
  const shouldUpgradeCallback = (request: IncomingMessage): boolean => upgrades.areFor(request);
  const server = createServer(
    {
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      requestTimeout: REQUEST_WITHIN_MS,
      shouldUpgradeCallback,
    },
    (request, response) => {
      upgrades.answering(request, response);
      takeOriginForm(request);
      traffic.serve(request, response, () => handler(request, response));
    },
  );
  server.on('checkContinue', (request, response) => {
    upgrades.answering(request, response);
    takeOriginForm(request);
    const others = (): void => {
      response.writeContinue();
      handler(request, response);
    };
    traffic.serve(request, response, others, true);
  });
  server.on('upgrade', (request, socket, head) => {
    takeOriginForm(request);
    void traffic.upgrade(request, socket, head);
  });
  traffic.addLanes(openLanes(server, traffic));
  return server;
}

function limiterOf(
  { perMinute, perHour, perDay }: NonNullable<HttpOptions['rateLimit']>,
  clock: Clock,
): RateLimiter {
  return new RateLimiter(
    [
      { name: 'minute', seconds: 60, quota: perMinute },
      { name: 'hour', seconds: 3600, quota: perHour },
      { name: 'day', seconds: 86_400, quota: perDay },
    ],
    clock,
  );
}
