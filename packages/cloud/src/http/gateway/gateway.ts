import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import type { EndpointDirectory } from '../../resources/endpoints/directory.ts';
import { checkGrant } from '../../resources/keys/gate.ts';
import type { Gate } from '../../resources/keys/gate.ts';
import type { Endpoint } from '../../store/records.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import { bearerOrBareKey } from '../bearer.ts';
import { asBerthError } from '../failures.ts';
import { goneSignal } from '../raw.ts';
import type { Request, Response } from '../raw.ts';
import type { GatewayAddress } from './address.ts';
import { readAffinity, WORKER_HEADER } from './affinity.ts';
import { Balancer } from './balancer.ts';
import { bodyAtHand } from './body.ts';
import { Caller } from './caller.ts';
import { Deadlines } from './deadlines.ts';
import { forward } from './forward.ts';
import { requestHead } from './headers.ts';
import { GATEWAY_LIMITS } from './limits.ts';
import type { GatewayLimits } from './limits.ts';
import { WORKERS } from './manner.ts';
import type { BalancedWorker, WorkerPool } from './pool.ts';
import { dropRest, Refusal, refuse, requestTooLarge } from './refusals.ts';
import { tunnel } from './tunnel.ts';
import { Connections } from './upstream/connections.ts';

const AFFINITY = WORKER_HEADER.toLowerCase();

export interface GatewayParts {
  pool: WorkerPool;
  gate: Gate;
  endpoints: EndpointDirectory;
  log: FastifyBaseLogger;
  limits?: Partial<GatewayLimits>;
}

/**
 * In front of load balancing endpoints: takes every request to one of the endpoint's workers.
 * There are no retries: only a request that no worker has seen anything of goes to another one.
 */
export class Gateway {
  readonly #parts: GatewayParts;
  readonly #limits: GatewayLimits;
  readonly #balancer: Balancer;
  readonly #connections: Connections;
  readonly #deadlines: Deadlines;
  /** Connections that ask for, or speak, another protocol. */
  readonly #callers = new Set<Duplex>();

  constructor(parts: GatewayParts) {
    this.#parts = parts;
    this.#limits = { ...GATEWAY_LIMITS, ...parts.limits };
    this.#balancer = new Balancer({ ...parts, limits: this.#limits });
    this.#connections = new Connections(this.#limits.connectMs);
    this.#deadlines = new Deadlines(this.#limits.requestMs);
  }

  /** `waitsToContinue`: the client has sent its headers and waits for `100 Continue`; it gets that once a worker is there. */
  async serve(
    request: Request,
    response: Response,
    address: GatewayAddress,
    waitsToContinue = false,
  ): Promise<void> {
    try {
      const endpoint = await this.#admit(request, address.endpointId);
      const head = requestHead(request, address);
      if (head.length !== undefined && head.length > this.#limits.bodyBytes)
        throw requestTooLarge(this.#limits.bodyBytes);
      let body: Buffer | undefined;
      await this.#withPlace(
        endpoint,
        request,
        () => goneSignal(response),
        (worker) => {
          body ??= bodyAtHand(request, head.length);
          return forward({
            request,
            response,
            worker,
            address,
            manner: WORKERS,
            head,
            body,
            connections: this.#connections,
            deadlines: this.#deadlines,
            limits: this.#limits,
            waitsToContinue,
          });
        },
      );
    } catch (error) {
      dropRest(request);
      this.#refuse(response, error, address);
    }
  }

  /** A WebSocket, or any other protocol that begins as a request. While it is open it counts as one request in flight. */
  async upgrade(request: Request, socket: Duplex, head: Buffer, address: GatewayAddress): Promise<void> {
    const caller = new Caller(socket, head);
    this.#callers.add(socket);
    socket.on('close', () => this.#callers.delete(socket));
    try {
      const endpoint = await this.#admit(request, address.endpointId);
      const opening = requestHead(request, address, request.headers.upgrade);
      if (opening.length !== 0)
        throw new BerthError('rule', 'a request that changes the protocol has no body');
      await this.#withPlace(
        endpoint,
        request,
        () => caller.gone,
        (worker) =>
          tunnel({
            request,
            caller,
            worker,
            address,
            manner: WORKERS,
            head: opening,
            connections: this.#connections,
            deadlines: this.#deadlines,
            limits: this.#limits,
          }),
      );
    } catch (error) {
      if (!socket.destroyed) this.#refuse(caller.answer(request), error, address);
    }
  }

  /** How many requests each worker of an endpoint has in flight. */
  loads(endpointId: string): ReadonlyMap<string, number> {
    return this.#balancer.loads(endpointId);
  }

  /** Requests of an endpoint in flight and waiting. */
  demand(endpointId: string): number {
    return this.#balancer.demand(endpointId);
  }

  /** An endpoint has changed or gone: that counts for those who wait too. Without an id, any may have. */
  lookAgain(endpointId?: string): void {
    this.#balancer.lookAgain(endpointId);
  }

  /** The server stops: nobody waits any longer, and open connections of other protocols are closed. Requests under way may end. */
  close(): void {
    this.#balancer.close();
    for (const socket of this.#callers) socket.destroy();
    this.#connections.close();
  }

  async #admit(request: Request, endpointId: string): Promise<Endpoint> {
    const key = await this.#parts.gate.identify(bearerOrBareKey(request.headers.authorization));
    const endpoint = await this.#parts.endpoints.find(endpointId);
    if (endpoint === undefined || endpoint.accountId !== key.accountId)
      throw notFound('endpoint', endpointId);
    checkGrant(key, { family: 'serverless', need: 'write', endpointId: endpoint.id });
    if (endpoint.type !== 'LOAD_BALANCER') throw new BerthError('rule', 'not allowed for QB API');
    return endpoint;
  }

  /** Gets a worker for a request, and another one for as long as none can be reached. */
  async #withPlace(
    endpoint: Endpoint,
    request: Request,
    gone: () => AbortSignal,
    send: (worker: BalancedWorker) => Promise<boolean>,
  ): Promise<void> {
    const visit = this.#balancer.arrive(endpoint, readAffinity(request.headers[AFFINITY]));
    let signal: AbortSignal | undefined;
    let place = this.#balancer.find(visit) ?? (await this.#balancer.wait(visit, (signal = gone())));
    try {
      while (!(await send(place.worker)))
        place = await this.#balancer.instead(visit, place, (signal ??= gone()));
    } finally {
      place.leave();
    }
  }

  #refuse(response: Response, error: unknown, { endpointId }: GatewayAddress): void {
    refuse(response, error instanceof Refusal ? error : asBerthError(error, this.#parts.log, endpointId));
  }
}
