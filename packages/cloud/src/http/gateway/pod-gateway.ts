import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import type { PodPortResolver } from '../../resources/pods/pod-port-resolver.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import { toBerthError } from '../http.errors.ts';
import type { Request, Response } from '../raw-http.ts';
import { takeBufferedBody } from './request-body-sender.ts';
import { UpgradeClient } from './upgrade-client.ts';
import { RequestDeadlines } from './request-deadlines.ts';
import type { WildcardDomain } from './wildcard-domain.ts';
import { forwardRequest } from './forward-request.ts';
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

export interface PodGatewayDeps {
  portResolver: Pick<PodPortResolver, 'resolve'>;
  /** Below which pods have host names. */
  domain: WildcardDomain;
  log: FastifyBaseLogger;
  limits?: Partial<GatewayLimits>;
}

/** In front of the HTTP ports of pods, which are for everyone: a pod asks its visitors for a password itself where it wants one. */
export class PodGateway {
  readonly #deps: PodGatewayDeps;
  readonly #limits: GatewayLimits;
  readonly #connections: UpstreamConnectionPool;
  readonly #deadlines: RequestDeadlines;
  /** Connections that ask for, or speak, another protocol. */
  readonly #callers = new Set<Duplex>();

  constructor(deps: PodGatewayDeps) {
    this.#deps = deps;
    this.#limits = { ...POD_GATEWAY_LIMITS, ...deps.limits };
    this.#connections = new UpstreamConnectionPool(this.#limits.connectMs);
    this.#deadlines = new RequestDeadlines(this.#limits.requestMs);
  }

  /** The port of a pod that a request is for; undefined where it is for none. */
  match({ headers, url = '' }: Pick<Request, 'headers' | 'url'>): PodPortUrl | 'malformed' | undefined {
    return parsePodPortHost(headers.host, url, this.#deps.domain) ?? parsePodPortPath(url);
  }

  async serve(
    request: Request,
    response: Response,
    address: PodPortUrl | 'malformed',
    waitsToContinue = false,
  ): Promise<void> {
    try {
      if (address === 'malformed') throw malformed();
      if (!address.path.startsWith('/')) return redirect(request, response, address);
      const pod = await this.#find(address);
      const head = upstreamRequestHead(request, address);
      const body = takeBufferedBody(request, head.length);
      const reached = await forwardRequest({
        request,
        response,
        upstream: pod,
        url: address,
        policy: POD_PROXY_POLICY,
        head,
        body,
        connections: this.#connections,
        deadlines: this.#deadlines,
        limits: this.#limits,
        expectsContinue: waitsToContinue,
      });
      if (!reached) throw unreachable();
    } catch (error) {
      discardBody(request);
      this.#refuse(response, error, address);
    }
  }

  async upgrade(
    request: Request,
    socket: Duplex,
    head: Buffer,
    address: PodPortUrl | 'malformed',
  ): Promise<void> {
    const caller = new UpgradeClient(socket, head);
    this.#callers.add(socket);
    socket.on('close', () => this.#callers.delete(socket));
    try {
      if (address === 'malformed') throw malformed();
      const opening = upstreamRequestHead(
        request,
        { ...address, path: address.path.startsWith('/') ? address.path : `/${address.path}` },
        request.headers.upgrade,
      );
      if (opening.length !== 0)
        throw new BerthError('rule', 'a request that changes the protocol has no body');
      const pod = await this.#find(address);
      const reached = await tunnelUpgrade({
        request,
        client: caller,
        upstream: pod,
        url: address,
        policy: POD_PROXY_POLICY,
        head: opening,
        connections: this.#connections,
        deadlines: this.#deadlines,
        limits: this.#limits,
      });
      if (!reached) throw unreachable();
    } catch (error) {
      if (!socket.destroyed) this.#refuse(caller.createResponse(request), error, address);
    }
  }

  /** The server stops: open connections of other protocols are closed. Requests under way may end. */
  close(): void {
    for (const socket of this.#callers) socket.destroy();
    this.#connections.close();
  }

  async #find({ podId, port }: PodPortUrl): Promise<Upstream> {
    const door = await this.#deps.portResolver.resolve(podId, port);
    switch (door.state) {
      case 'open':
        return { id: podId, ...door.address };
      case 'unknown-pod':
        throw notFound('pod', podId);
      case 'unknown-port':
        throw new BerthError(
          'not-found',
          `pod ${podId} has no HTTP port ${port}; ${door.ports.length === 0 ? 'it declares none' : `it declares ${door.ports.join(', ')}`}`,
        );
      case 'not-running':
        throw new GatewayError(502, `pod ${podId} does not run: it is ${door.status}`);
      case 'silent':
        throw new GatewayError(502, `nothing listens on port ${port} of pod ${podId} yet`, {
          headers: { 'retry-after': '1' },
        });
    }
  }

  #refuse(response: Response, error: unknown, address: PodPortUrl | 'malformed'): void {
    sendGatewayError(
      response,
      error instanceof GatewayError
        ? error
        : toBerthError(error, this.#deps.log, address === 'malformed' ? '' : address.podId),
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

/** Without the slash at its end, what a page names relative to itself would be looked for beside the pod. */
function redirect(request: Request, response: Response, { path, prefix }: PodPortUrl): void {
  discardBody(request);
  response.writeHead(308, { location: `${prefix}/${path}`, 'content-length': 0 }).end();
}
