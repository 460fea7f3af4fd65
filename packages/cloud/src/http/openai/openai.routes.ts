import type { FastifyBaseLogger } from 'fastify';
import { hasEnded } from '../../domain/job-status.ts';
import { memberText } from '../../support/json-text.ts';
import type { Tracing } from '../../domain/tracing.ts';
import { traceSubmission } from '../jobs/job-submission-trace.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import type { EndpointCache } from '../../resources/endpoints/endpoint-cache.ts';
import type { Authenticator } from '../../auth/authenticator.ts';
import type { OpenAccesses } from '../../auth/open-access.ts';
import type { Job, JobOutcome } from '../../domain/job-records.ts';
import type { Endpoint } from '../../domain/records.ts';
import { BerthError } from '../../support/errors.ts';
import { bearerOrBareKey } from '../../auth/bearer.ts';
import { authorizeForEndpoint } from '../../auth/endpoint-access.ts';
import { admitRequest } from '../connection-limit.ts';
import { toBerthError } from '../http.errors.ts';
import type { JobUrl } from '../jobs/job-url.ts';
import { MAX_RUNSYNC_BODY_BYTES } from '../../domain/limits.ts';
import type { JobRateLimits } from '../jobs/job-rate-limits.ts';
import { abortOnClose, discardRest, readUtf8Body, sendJson } from '../raw-http.ts';
import type { Request, Response } from '../raw-http.ts';
import { endWhenRevoked } from '../revocable-response.ts';
import { completionJson } from './openai-output.ts';
import { errorJson, sendOpenAiError, toJobFailure, SERVER_STOPPING } from './openai.errors.ts';
import { postCall, getCall, openAiRoute } from './openai-request.ts';
import { relayStream } from './openai-stream.ts';

const OPERATION = 'openai';
const METHODS = ['GET', 'POST'];
/** A running job ends by its own time limit; until then it is checked this often. */
const RECHECK_MS = 60_000;
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

export interface OpenAiRoutesDeps {
  queue: JobQueue;
  endpoints: EndpointCache;
  authenticator: Authenticator;
  openAccesses: OpenAccesses;
  rateLimits: JobRateLimits | undefined;
  tracing?: Tracing | undefined;
  log: FastifyBaseLogger;
}

/**
 * The OpenAI API of a queue endpoint: `/v2/{endpoint_id}/openai/v1/…`. Every call becomes a job
 * whose handler implements that API, and the job's output becomes the response. A client that
 * disconnects cancels its job.
 */
export class OpenAiRoutes {
  readonly #deps: OpenAiRoutesDeps;
  readonly #closing = new AbortController();

  constructor(deps: OpenAiRoutesDeps) {
    this.#deps = deps;
  }

  handles(operation: string): boolean {
    return operation === OPERATION;
  }

  async serve(request: Request, response: Response, url: JobUrl): Promise<void> {
    let release: (() => void) | undefined;
    try {
      const { rateLimits, queue } = this.#deps;
      const token = bearerOrBareKey(request.headers.authorization);
      const { key, endpoint } = await authorizeForEndpoint(this.#deps, token, url.endpointId, 'write');
      admitRequest(request.socket, key.accountId);
      endWhenRevoked(this.#deps.openAccesses, {
        response,
        credential: token ?? '',
        expiresAt: key.expiresAt,
        authorize: async () => (await authorizeForEndpoint(this.#deps, token, url.endpointId, 'write')).key,
        sendError: (error) => sendOpenAiError(response, error),
      });
      if (endpoint.type !== 'QUEUE')
        throw new BerthError('rule', 'not allowed for a load balancing endpoint: it has no queue');
      if (!METHODS.includes(request.method ?? ''))
        throw new BerthError(
          'method',
          `${request.method} is not allowed here; allowed: ${METHODS.join(', ')}`,
          { headers: { allow: METHODS.join(', ') } },
        );
      release = rateLimits?.acquire(
        key.accountId,
        endpoint.id,
        OPERATION,
        () => queue.heartbeats.liveWorkers(endpoint.id).filter(({ busy }) => busy > 0).length,
      );
      await this.#call(request, response, endpoint, key.accountId, openAiRoute(url.rest));
    } catch (error) {
      discardRest(request);
      const known = toBerthError(error, this.#deps.log, url.endpointId);
      if (response.headersSent) response.destroy();
      else sendOpenAiError(response, known);
    } finally {
      release?.();
    }
  }

  /** The server stops: waiting requests end. */
  close(): void {
    this.#closing.abort();
  }

  async #call(
    request: Request,
    response: Response,
    endpoint: Endpoint,
    accountId: string,
    route: string,
  ): Promise<void> {
    const { queue } = this.#deps;
    const signal = AbortSignal.any([abortOnClose(response), this.#closing.signal]);
    const body = await readUtf8Body(request, MAX_RUNSYNC_BODY_BYTES, accountId);
    const call = request.method === 'GET' ? getCall(route) : postCall(route, body);
    const timeoutMs = endpoint.executionTimeout === 0 ? endpoint.jobTtl : endpoint.executionTimeout;
    const submitted = {
      endpoint,
      accountId,
      request: call.text,
      options: { sync: { wait: timeoutMs, waitGiven: false } },
    };
    const job = await traceSubmission(this.#deps.tracing, { request }, submitted, (one) => queue.submit(one));
    // A monotonic clock: the system clock may be set during the wait.
    const giveUpAt = performance.now() + timeoutMs;
    let isOpen = true;
    try {
      const outcome = call.stream
        ? await relayStream({ queue, job, response, signal, giveUpAt })
        : { sent: false, found: await this.#waitForEnd(job, giveUpAt, signal) };
      isOpen = outcome.found !== undefined && !hasEnded(outcome.found.job);
      if (isOpen) await queue.cancel(endpoint.id, job.seq);
      isOpen = false;
      if (!outcome.sent) await this.#sendResult(response, outcome.found);
    } finally {
      // After an error nobody waits for the job.
      if (isOpen) await queue.cancel(endpoint.id, job.seq);
    }
  }

  /**
   * The job when it has ended; or as it is when the client disconnects, or no worker took it in time. A
   * running job ends by its own time limit.
   */
  async #waitForEnd(job: Job, giveUpAt: number, signal: AbortSignal): Promise<JobOutcome | undefined> {
    const { queue } = this.#deps;
    for (;;) {
      const now = performance.now();
      const until = giveUpAt > now ? giveUpAt : now + RECHECK_MS;
      const found = await queue.waitForEnd(job.endpointId, job.seq, until - now, signal);
      // Before the deadline, only a closing queue returns a running job.
      if (found?.job.status !== 'IN_PROGRESS' || signal.aborted || performance.now() < until) return found;
    }
  }

  async #sendResult(response: Response, found: JobOutcome | undefined): Promise<void> {
    const failure =
      this.#closing.signal.aborted && found !== undefined && !hasEnded(found.job)
        ? SERVER_STOPPING
        : toJobFailure(found);
    if (failure !== undefined) return sendJson(response, failure.status, errorJson(failure.error));
    const { job, payloads } = found as JobOutcome;
    sendJson(response, 200, completionJson(payloads.output) ?? (await this.#streamedOutput(job)));
  }

  /** A handler that does not aggregate its output has only streamed it. */
  async #streamedOutput({ endpointId, seq }: Job): Promise<string> {
    const chunks = await this.#deps.queue.streams.read(endpointId, seq, 0, MAX_RESPONSE_BYTES);
    const values = chunks.map(({ text }) => memberText(text, 'output') ?? 'null');
    return values.length === 1
      ? (values[0] ?? 'null')
      : values.length === 0
        ? 'null'
        : `[${values.join(',')}]`;
  }
}
