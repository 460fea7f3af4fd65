import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import type { PodDoors } from '../../resources/pods/doors.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import { asBerthError } from '../failures.ts';
import type { Request, Response } from '../raw.ts';
import { bodyAtHand } from './body.ts';
import { Caller } from './caller.ts';
import { Deadlines } from './deadlines.ts';
import type { Domain } from './domain.ts';
import { forward } from './forward.ts';
import { requestHead } from './headers.ts';
import { POD_LIMITS } from './limits.ts';
import type { GatewayLimits } from './limits.ts';
import { PODS } from './manner.ts';
import { podHostAddress, podPathAddress } from './pod-address.ts';
import type { PodAddress } from './pod-address.ts';
import type { BalancedWorker } from './pool.ts';
import { badGateway, dropRest, Refusal, refuse } from './refusals.ts';
import { tunnel } from './tunnel.ts';
import { Connections } from './upstream/connections.ts';

export interface PodGatewayParts {
  doors: Pick<PodDoors, 'find'>;
  /** Below which pods have host names. */
  domain: Domain;
  log: FastifyBaseLogger;
  limits?: Partial<GatewayLimits>;
}

/** In front of the HTTP ports of pods, which are for everyone: a pod asks its visitors for a password itself where it wants one. */
export class PodGateway {
  readonly #parts: PodGatewayParts;
  readonly #limits: GatewayLimits;
  readonly #connections: Connections;
  readonly #deadlines: Deadlines;
  /** Connections that ask for, or speak, another protocol. */
  readonly #callers = new Set<Duplex>();

  constructor(parts: PodGatewayParts) {
    this.#parts = parts;
    this.#limits = { ...POD_LIMITS, ...parts.limits };
    this.#connections = new Connections(this.#limits.connectMs);
    this.#deadlines = new Deadlines(this.#limits.requestMs);
  }

  /** The port of a pod that a request is for; undefined where it is for none. */
  address({ headers, url = '' }: Pick<Request, 'headers' | 'url'>): PodAddress | 'malformed' | undefined {
    return podHostAddress(headers.host, url, this.#parts.domain) ?? podPathAddress(url);
  }

  async serve(
    request: Request,
    response: Response,
    address: PodAddress | 'malformed',
    waitsToContinue = false,
  ): Promise<void> {
    try {
      if (address === 'malformed') throw malformed();
      if (!address.path.startsWith('/')) return redirect(request, response, address);
      const pod = await this.#find(address);
      const head = requestHead(request, address);
      const body = bodyAtHand(request, head.length);
      const reached = await forward({
        request,
        response,
        worker: pod,
        address,
        manner: PODS,
        head,
        body,
        connections: this.#connections,
        deadlines: this.#deadlines,
        limits: this.#limits,
        waitsToContinue,
      });
      if (!reached) throw unreachable();
    } catch (error) {
      dropRest(request);
      this.#refuse(response, error, address);
    }
  }

  async upgrade(
    request: Request,
    socket: Duplex,
    head: Buffer,
    address: PodAddress | 'malformed',
  ): Promise<void> {
    const caller = new Caller(socket, head);
    this.#callers.add(socket);
    socket.on('close', () => this.#callers.delete(socket));
    try {
      if (address === 'malformed') throw malformed();
      const opening = requestHead(
        request,
        { ...address, path: address.path.startsWith('/') ? address.path : `/${address.path}` },
        request.headers.upgrade,
      );
      if (opening.length !== 0)
        throw new BerthError('rule', 'a request that changes the protocol has no body');
      const pod = await this.#find(address);
      const reached = await tunnel({
        request,
        caller,
        worker: pod,
        address,
        manner: PODS,
        head: opening,
        connections: this.#connections,
        deadlines: this.#deadlines,
        limits: this.#limits,
      });
      if (!reached) throw unreachable();
    } catch (error) {
      if (!socket.destroyed) this.#refuse(caller.answer(request), error, address);
    }
  }

  /** The server stops: open connections of other protocols are closed. Requests under way may end. */
  close(): void {
    for (const socket of this.#callers) socket.destroy();
    this.#connections.close();
  }

  async #find({ podId, port }: PodAddress): Promise<BalancedWorker> {
    const door = await this.#parts.doors.find(podId, port);
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
        throw new Refusal(502, `pod ${podId} does not run: it is ${door.status}`);
      case 'silent':
        throw new Refusal(502, `nothing listens on port ${port} of pod ${podId} yet`, {
          headers: { 'retry-after': '1' },
        });
    }
  }

  #refuse(response: Response, error: unknown, address: PodAddress | 'malformed'): void {
    refuse(
      response,
      error instanceof Refusal
        ? error
        : asBerthError(error, this.#parts.log, address === 'malformed' ? '' : address.podId),
    );
  }
}

function unreachable(): Refusal {
  return badGateway('it cannot be reached', PODS);
}

function malformed(): BerthError {
  return new BerthError(
    'no-route',
    'the address of a port is /proxy/{pod_id}-{port}/, for example /proxy/abc123-8000/',
  );
}

/** Without the slash at its end, what a page names relative to itself would be looked for beside the pod. */
function redirect(request: Request, response: Response, { path, prefix }: PodAddress): void {
  dropRest(request);
  response.writeHead(308, { location: `${prefix}/${path}`, 'content-length': 0 }).end();
}
