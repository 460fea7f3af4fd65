import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import type { PodPortResolver } from '../../resources/pods/pod-port-resolver.ts';
import type { Tracing } from '../../domain/tracing.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import { claimConnection } from '../connection-limit.ts';
import { toBerthError } from '../http.errors.ts';
import type { Request, Response } from '../raw-http.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '../request-id.ts';
import { takeBufferedBody } from './request-body-sender.ts';
import { UpgradeClient } from './upgrade-client.ts';
import { RequestDeadlines } from './request-deadlines.ts';
import { LOCAL_DOMAIN, ownHostUrl } from './page-isolation.ts';
import { WildcardDomain } from './wildcard-domain.ts';
import { forwardRequest } from './forward-request.ts';
import { traceForwarded } from './gateway-trace.ts';
import { upstreamRequestHead } from './gateway-headers.ts';
import { POD_GATEWAY_LIMITS } from './gateway-limits.ts';
import type { GatewayLimits } from './gateway-limits.ts';
import { POD_PROXY_POLICY } from './proxy-policy.ts';
import { parsePodPortHost, parsePodPortPath } from './pod-port-url.ts';
import type { PodPortUrl } from './pod-port-url.ts';
import type { Upstream } from '../../domain/endpoints/worker-pool.ts';
import { badGateway, discardBody, GatewayError, sendGatewayError } from './gateway.errors.ts';
import { tunnelUpgrade } from './upgrade-tunnel.ts';
import { UpstreamConnectionPool } from './upstream/upstream-connection-pool.ts';

/** On a laptop every pod has a host name, without any setup. */
const LOCAL_NAMES = new WildcardDomain(LOCAL_DOMAIN);

export interface PodGatewayDeps {
  portResolver: Pick<PodPortResolver, 'resolve'>;
  /** The domain below which pods have host names. */
  domain: WildcardDomain;
  log: FastifyBaseLogger;
  limits?: Partial<GatewayLimits>;
  tracing?: Tracing | undefined;
}

/** The proxy of the HTTP ports of pods. They are public: a pod that wants a password asks for it itself. */
export class PodGateway {
  readonly #deps: PodGatewayDeps;
  readonly #limits: GatewayLimits;
  readonly #connections: UpstreamConnectionPool;
  readonly #deadlines: RequestDeadlines;
  /** Connections with an upgrade, or that ask for one. */
  readonly #upgrades = new Set<Duplex>();

  constructor(deps: PodGatewayDeps) {
    this.#deps = deps;
    this.#limits = { ...POD_GATEWAY_LIMITS, ...deps.limits };
    this.#connections = new UpstreamConnectionPool(this.#limits.connectMs);
    this.#deadlines = new RequestDeadlines(this.#limits.requestMs);
  }

  /** The pod port that a request is for, if any. */
  match({ headers, url = '' }: Pick<Request, 'headers' | 'url'>): PodPortUrl | 'malformed' | undefined {
    return (
      parsePodPortHost(headers.host, url, this.#deps.domain) ??
      parsePodPortHost(headers.host, url, LOCAL_NAMES) ??
      parsePodPortPath(url)
    );
  }

  async serve(
    request: Request,
    response: Response,
    url: PodPortUrl | 'malformed',
    expectsContinue = false,
  ): Promise<void> {
    try {
      if (url === 'malformed') throw malformed();
      const ownUrl = ownHostUrl(request, { ...url, label: `${url.podId}-${url.port}` }, this.#deps.domain);
      if (ownUrl !== undefined) return sendRedirect(request, response, 307, ownUrl);
      if (!url.path.startsWith('/'))
        // Without the slash at the end, relative links of a page would point outside the pod's prefix.
        return sendRedirect(request, response, 308, `${url.prefix}/${url.path}`);
      const pod = await this.#find(request, url);
      const traceparent = traceForwarded(this.#deps.tracing, request, response, {
        'berth.pod_id': url.podId,
      });
      const head = upstreamRequestHead(request, url, undefined, traceparent);
      const body = takeBufferedBody(request, head.length);
      const reached = await forwardRequest({
        request,
        response,
        upstream: pod,
        url,
        policy: POD_PROXY_POLICY,
        head,
        body,
        connections: this.#connections,
        deadlines: this.#deadlines,
        limits: this.#limits,
        expectsContinue,
      });
      if (!reached) throw unreachable();
    } catch (error) {
      discardBody(request);
      this.#sendError(response, error, url);
    }
  }

  async upgrade(
    request: Request,
    socket: Duplex,
    head: Buffer,
    url: PodPortUrl | 'malformed',
  ): Promise<void> {
    const client = new UpgradeClient(socket, head);
    this.#upgrades.add(socket);
    socket.on('close', () => this.#upgrades.delete(socket));
    try {
      if (url === 'malformed') throw malformed();
      const upgradeHead = upstreamRequestHead(
        request,
        { ...url, path: url.path.startsWith('/') ? url.path : `/${url.path}` },
        request.headers.upgrade,
      );
      if (upgradeHead.length !== 0) throw new BerthError('rule', 'an upgrade request must not have a body');
      const pod = await this.#find(request, url);
      const reached = await tunnelUpgrade({
        request,
        client,
        upstream: pod,
        url,
        policy: POD_PROXY_POLICY,
        head: upgradeHead,
        connections: this.#connections,
        deadlines: this.#deadlines,
        limits: this.#limits,
      });
      if (!reached) throw unreachable();
    } catch (error) {
      if (!socket.destroyed) this.#sendError(client.createResponse(request), error, url);
    }
  }

  /** The server stops: upgraded connections are closed. Requests in flight may end. */
  close(): void {
    for (const socket of this.#upgrades) socket.destroy();
    this.#connections.close();
  }

  async #find({ socket }: Request, { podId, port }: PodPortUrl): Promise<Upstream> {
    const resolved = await this.#deps.portResolver.resolve(podId, port);
    switch (resolved.state) {
      case 'open':
        // The client sends no key: the connection counts for the owner of the pod.
        claimConnection(socket, resolved.accountId);
        return { id: podId, ...resolved.address };
      case 'unknown-pod':
        throw notFound('pod', podId);
      case 'unknown-port':
        throw new BerthError(
          'not-found',
          `pod ${podId} has no HTTP port ${port}; ` +
            `${resolved.ports.length === 0 ? 'it declares none' : `it declares ${resolved.ports.join(', ')}`}`,
        );
      case 'not-running':
        throw new GatewayError(502, `pod ${podId} does not run: it is ${resolved.status}`);
      case 'silent':
        throw new GatewayError(502, `nothing listens on port ${port} of pod ${podId} yet`, {
          headers: { 'retry-after': '1' },
        });
    }
  }

  #sendError(response: Response, error: unknown, url: PodPortUrl | 'malformed'): void {
    sendGatewayError(
      response,
      error instanceof GatewayError
        ? error
        : toBerthError(error, this.#deps.log, url === 'malformed' ? '' : url.podId),
    );
  }
}

function unreachable(): GatewayError {
  return badGateway('it cannot be reached', POD_PROXY_POLICY);
}

function malformed(): BerthError {
  return new BerthError(
    'no-route',
    'the address of a port is /proxy/{pod_id}-{port}/, for example /proxy/abc123-8000/',
  );
}

function sendRedirect(request: Request, response: Response, status: 307 | 308, location: string): void {
  discardBody(request);
  response
    .writeHead(status, { location, 'content-length': 0, [REQUEST_ID_HEADER]: requestIdOf(request) })
    .end();
}
