import type { FastifyBaseLogger } from 'fastify';
import { hasEnded } from '../../domain/job-status.ts';
import { memberText } from '../../support/json-text.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import type { EndpointCache } from '../../resources/endpoints/endpoint-cache.ts';
import type { Authenticator } from '../../auth/authenticator.ts';
import type { Job, JobOutcome } from '../../domain/job-records.ts';
import type { Endpoint } from '../../domain/records.ts';
import { BerthError } from '../../support/errors.ts';
import { bearerOrBareKey } from '../../auth/bearer.ts';
import { authorizeForEndpoint } from '../../auth/endpoint-access.ts';
import { toBerthError } from '../http.errors.ts';
import type { JobUrl } from '../jobs/job-url.ts';
import { MAX_RUNSYNC_BODY_BYTES } from '../jobs/job-request.ts';
import type { JobRateLimits } from '../jobs/job-rate-limits.ts';
import { abortOnClose, readUtf8Body, sendJson } from '../raw-http.ts';
import type { Request, Response } from '../raw-http.ts';
import { completionJson } from './openai-output.ts';
import { errorJson, sendOpenAiError, toJobFailure, SERVER_STOPPING } from './openai.errors.ts';
import { postCall, getCall, openAiRoute } from './openai-request.ts';
import { relayStream } from './openai-stream.ts';

const OPERATION = 'openai';
const METHODS = ['GET', 'POST'];
/** A running job is ended by its own time limit; this is how often we look meanwhile. */
const RECHECK_MS = 60_000;
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

export interface OpenAiRoutesDeps {
  queue: JobQueue;
  endpoints: EndpointCache;
  authenticator: Authenticator;
  rateLimits: JobRateLimits | undefined;
  log: FastifyBaseLogger;
}

/**
 * The OpenAI interface of a queue endpoint: `/v2/{endpoint_id}/openai/v1/…`. Every call is a
 * job whose handler speaks that interface; here it is put into a job and taken out again. The
 * caller is part of it: who hangs up has cancelled the job.
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

  async serve(request: Request, response: Response, address: JobUrl): Promise<void> {
    let leave: (() => void) | undefined;
    try {
      const { rateLimits, queue } = this.#deps;
      const token = bearerOrBareKey(request.headers.authorization);
      const { key, endpoint } = await authorizeForEndpoint(this.#deps, token, address.endpointId, 'write');
      if (endpoint.type !== 'QUEUE')
        throw new BerthError('rule', 'not allowed for a load balancing endpoint: it has no queue');
      if (!METHODS.includes(request.method ?? ''))
        throw new BerthError(
          'method',
          `${request.method} is not allowed here; allowed: ${METHODS.join(', ')}`,
          { headers: { allow: METHODS.join(', ') } },
        );
      leave = rateLimits?.acquire(
        key.accountId,
        endpoint.id,
        OPERATION,
        () => queue.heartbeats.liveWorkers(endpoint.id).filter(({ busy }) => busy > 0).length,
      );
      await this.#call(request, response, endpoint, key.accountId, openAiRoute(address.rest));
    } catch (error) {
      if (!request.readableEnded) request.resume();
      const known = toBerthError(error, this.#deps.log, address.endpointId);
      if (response.headersSent) response.destroy();
      else sendOpenAiError(response, known);
    } finally {
      leave?.();
    }
  }

  /** Lets everyone go who waits: the server stops. */
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
    const body = await readUtf8Body(request, MAX_RUNSYNC_BODY_BYTES);
    const call = request.method === 'GET' ? getCall(route) : postCall(route, body);
    const patience = endpoint.executionTimeout === 0 ? endpoint.jobTtl : endpoint.executionTimeout;
    const job = await queue.submit({
      endpoint,
      accountId,
      request: call.text,
      options: { sync: { wait: patience, waitGiven: false } },
    });
    // Not by the clock, which may be set while somebody waits.
    const giveUpAt = performance.now() + patience;
    let isOpen = true;
    try {
      const outcome = call.stream
        ? await relayStream({ queue, job, response, signal, giveUpAt })
        : { sent: false, found: await this.#waitForEnd(job, giveUpAt, signal) };
      isOpen = outcome.found !== undefined && !hasEnded(outcome.found.job);
      if (isOpen) await queue.cancel(endpoint.id, job.seq);
      isOpen = false;
      if (!outcome.sent) await this.#answer(response, outcome.found);
    } finally {
      // Whatever went wrong here: nobody waits for the job any more.
      if (isOpen) await queue.cancel(endpoint.id, job.seq);
    }
  }

  /** The job once it has ended; or as it is when the caller has gone, or nobody took it in time. One that runs is ended by its own time limit. */
  async #waitForEnd(job: Job, giveUpAt: number, signal: AbortSignal): Promise<JobOutcome | undefined> {
    const { queue } = this.#deps;
    for (;;) {
      const now = performance.now();
      const until = giveUpAt > now ? giveUpAt : now + RECHECK_MS;
      const found = await queue.waitForEnd(job.endpointId, job.seq, until - now, signal);
      // Before its time, a job that runs is shown only by a queue that closes.
      if (found?.job.status !== 'IN_PROGRESS' || signal.aborted || performance.now() < until) return found;
    }
  }

  async #answer(response: Response, found: JobOutcome | undefined): Promise<void> {
    const failure =
      this.#closing.signal.aborted && found !== undefined && !hasEnded(found.job)
        ? SERVER_STOPPING
        : toJobFailure(found);
    if (failure !== undefined) return sendJson(response, failure.status, errorJson(failure.error));
    const { job, payloads } = found as JobOutcome;
    sendJson(response, 200, completionJson(payloads.output) ?? (await this.#streamed(job)));
  }

  /** A handler that keeps no list of what it yields has only streamed its answer. */
  async #streamed({ endpointId, seq }: Job): Promise<string> {
    const chunks = await this.#deps.queue.streams.read(endpointId, seq, 0, MAX_RESPONSE_BYTES);
    const values = chunks.map(({ text }) => memberText(text, 'output') ?? 'null');
    return values.length === 1
      ? (values[0] ?? 'null')
      : values.length === 0
        ? 'null'
        : `[${values.join(',')}]`;
  }
}
