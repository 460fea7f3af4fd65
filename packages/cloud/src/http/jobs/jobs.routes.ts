import { setTimeout as pause } from 'node:timers/promises';
import { checkScope } from '../../auth/authenticator.ts';
import { bearerOrBareKey } from '../../auth/bearer.ts';
import { authenticateForEndpoint, authorizeForEndpoint } from '../../auth/endpoint-access.ts';
import { BerthError } from '../../support/errors.ts';
import { admitRequest } from '../connection-limit.ts';
import { toBerthError } from '../http.errors.ts';
import { discardRest } from '../raw-http.ts';
import type { BasicRequest, BasicResponse } from '../raw-http.ts';
import { endWhenRevoked } from '../revocable-response.ts';
import { jobLogOperations } from './job-logs.routes.ts';
import { noSuchRoute } from './job-operation.ts';
import type { JobOperation, JobOperations, JobRoutesDeps } from './job-operation.ts';
import { jobQueueOperations } from './job-queue.routes.ts';
import { jobStatusOperations } from './job-status.routes.ts';
import { submitOperations } from './job-submit.routes.ts';
import type { JobUrl } from './job-url.ts';
import { jobWebhookOperations } from './job-webhooks.routes.ts';
import { RequestTurns } from './request-turns.ts';
import { sendJobError } from './jobs.errors.ts';

/**
 * A client that is refused at once asks again at once: 64 connections did so 4,000 times a second, and took the
 * processors from everybody else.
 */
const REFUSAL_DELAY_MS = 100;

const NO_QUERY = new URLSearchParams();

/**
 * The job API of a queue endpoint, `/v2/{endpoint_id}/run` and the other operations: routing, authorization
 * and rate limits.
 */
export class JobRoutes {
  readonly #deps: JobRoutesDeps;
  readonly #operations: JobOperations;
  readonly #turns = new RequestTurns();

  constructor(deps: JobRoutesDeps) {
    this.#deps = deps;
    this.#operations = {
      ...submitOperations(deps),
      ...jobStatusOperations(deps),
      ...jobQueueOperations(deps),
      ...jobLogOperations(deps),
      ...jobWebhookOperations(deps),
    };
  }

  handles(operation: string): boolean {
    return Object.hasOwn(this.#operations, operation);
  }

  async serve(request: BasicRequest, response: BasicResponse, url: JobUrl): Promise<void> {
    let release: (() => void) | undefined;
    try {
      const operation = this.#operations[url.operation] as JobOperation;
      const token = bearerOrBareKey(request.headers.authorization);
      const { key, endpoint } = await authenticateForEndpoint(this.#deps, token, url.endpointId);
      admitRequest(request.socket, key.accountId);
      const turn = this.#turns.next(key.accountId);
      if (turn !== undefined) await turn;
      if (url.rest.length > (operation.segments ?? 0)) throw noSuchRoute();
      if (!operation.methods.includes(request.method ?? '')) {
        throw new BerthError(
          'method',
          `${request.method} is not allowed here; allowed: ${operation.methods.join(', ')}`,
          { headers: { allow: operation.methods.join(', ') } },
        );
      }
      checkScope(key, { scope: 'serverless', mode: operation.mode, endpointId: endpoint.id });
      // A short operation whose body has arrived is over before a check would be.
      if (operation.long === true || request.body === undefined)
        this.#endWhenRevoked(response, token ?? '', url, operation.mode, key.expiresAt);
      if (endpoint.type !== 'QUEUE')
        throw new BerthError('rule', 'not allowed for a load balancing endpoint: it has no queue');
      release = this.#deps.rateLimits?.acquire(
        key.accountId,
        endpoint.id,
        url.operation,
        () => this.#deps.queue.heartbeats.liveWorkers(endpoint.id).filter(({ busy }) => busy > 0).length,
      );
      await operation.handle({
        request,
        response,
        endpoint,
        key,
        rest: url.rest,
        query: url.query === '' ? NO_QUERY : new URLSearchParams(url.query),
      });
    } catch (error) {
      // Nobody waits for a response after an aborted request, or after leaving a stopping server, whose store
      // may be closed by now.
      if ((request.destroyed && !request.complete) || (response.destroyed && this.#deps.queue.isClosing))
        return;
      discardRest(request);
      const known = toBerthError(error, this.#deps.log, url.endpointId);
      if (known.code === 'rate') await pause(REFUSAL_DELAY_MS);
      sendJobError(response, known);
    } finally {
      release?.();
      // An open connection would keep the server from stopping.
      if (this.#deps.queue.isClosing) request.socket.destroySoon();
    }
  }

  #endWhenRevoked(
    response: BasicResponse,
    token: string,
    { endpointId }: JobUrl,
    mode: 'read' | 'write',
    expiresAt: number | null,
  ): void {
    endWhenRevoked(this.#deps.openAccesses, {
      response,
      credential: token,
      expiresAt,
      authorize: async () => (await authorizeForEndpoint(this.#deps, token, endpointId, mode)).key,
      sendError: (error) => sendJobError(response, error),
    });
  }
}
