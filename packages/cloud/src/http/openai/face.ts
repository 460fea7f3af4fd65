import type { FastifyBaseLogger } from 'fastify';
import { hasEnded } from '../../jobs/job.ts';
import { memberText } from '../../jobs/json-text.ts';
import type { JobQueue } from '../../jobs/queue.ts';
import type { EndpointDirectory } from '../../resources/endpoints/directory.ts';
import { checkGrant } from '../../resources/keys/gate.ts';
import type { Gate } from '../../resources/keys/gate.ts';
import type { Job, JobOutcome } from '../../store/job-records.ts';
import type { Endpoint } from '../../store/records.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import { bearerOrBareKey } from '../bearer.ts';
import { asBerthError } from '../failures.ts';
import type { JobAddress } from '../jobs/address.ts';
import { RUNSYNC_LIMIT } from '../jobs/face.ts';
import type { JobRateLimits } from '../jobs/rate-limits.ts';
import { goneSignal, readUtf8, sendJson } from '../raw.ts';
import type { Request, Response } from '../raw.ts';
import { answerText } from './answer.ts';
import { errorText, failOpenAi, failureOf, SERVER_STOPS } from './failures.ts';
import { callWith, plainCall, routeOf } from './request.ts';
import { passOnStream } from './stream.ts';

const OPERATION = 'openai';
const METHODS = ['GET', 'POST'];
/** A running job is ended by its own time limit; this is how often we look meanwhile. */
const LOOK_AGAIN_MS = 60_000;
const LARGEST_ANSWER = 64 * 1024 * 1024;

export interface OpenAiFaceParts {
  queue: JobQueue;
  endpoints: EndpointDirectory;
  gate: Gate;
  limits: JobRateLimits | undefined;
  log: FastifyBaseLogger;
}

/**
 * The OpenAI interface of a queue endpoint: `/v2/{endpoint_id}/openai/v1/…`. Every call is a
 * job whose handler speaks that interface; here it is put into a job and taken out again. The
 * caller is part of it: who hangs up has cancelled the job.
 */
export class OpenAiFace {
  readonly #parts: OpenAiFaceParts;
  readonly #closing = new AbortController();

  constructor(parts: OpenAiFaceParts) {
    this.#parts = parts;
  }

  handles(operation: string): boolean {
    return operation === OPERATION;
  }

  async serve(request: Request, response: Response, address: JobAddress): Promise<void> {
    let leave: (() => void) | undefined;
    try {
      const { gate, endpoints, limits, queue } = this.#parts;
      const key = await gate.identify(bearerOrBareKey(request.headers.authorization));
      const endpoint = await endpoints.find(address.endpointId);
      if (endpoint === undefined || endpoint.accountId !== key.accountId)
        throw notFound('endpoint', address.endpointId);
      checkGrant(key, { family: 'serverless', need: 'write', endpointId: endpoint.id });
      if (endpoint.type !== 'QUEUE')
        throw new BerthError('rule', 'not allowed for a load balancing endpoint: it has no queue');
      if (!METHODS.includes(request.method ?? ''))
        throw new BerthError(
          'method',
          `${request.method} is not allowed here; allowed: ${METHODS.join(', ')}`,
          { headers: { allow: METHODS.join(', ') } },
        );
      leave = limits?.enter(
        key.accountId,
        endpoint.id,
        OPERATION,
        () => queue.presence.here(endpoint.id).filter(({ busy }) => busy > 0).length,
      );
      await this.#call(request, response, endpoint, key.accountId, routeOf(address.rest));
    } catch (error) {
      if (!request.readableEnded) request.resume();
      const known = asBerthError(error, this.#parts.log, address.endpointId);
      if (response.headersSent) response.destroy();
      else failOpenAi(response, known);
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
    const { queue } = this.#parts;
    const signal = AbortSignal.any([goneSignal(response), this.#closing.signal]);
    const body = await readUtf8(request, RUNSYNC_LIMIT);
    const call = request.method === 'GET' ? plainCall(route) : callWith(route, body);
    const patience = endpoint.executionTimeout === 0 ? endpoint.jobTtl : endpoint.executionTimeout;
    const job = await queue.submit({
      endpoint,
      accountId,
      request: call.text,
      terms: { sync: { wait: patience, waitGiven: false } },
    });
    // Not by the clock, which may be set while somebody waits.
    const giveUpAt = performance.now() + patience;
    let isOpen = true;
    try {
      const outcome = call.stream
        ? await passOnStream({ queue, job, response, signal, giveUpAt })
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
    const { queue } = this.#parts;
    for (;;) {
      const now = performance.now();
      const until = giveUpAt > now ? giveUpAt : now + LOOK_AGAIN_MS;
      const found = await queue.waitForEnd(job.endpointId, job.seq, until - now, signal);
      // Before its time, a job that runs is shown only by a queue that closes.
      if (found?.job.status !== 'IN_PROGRESS' || signal.aborted || performance.now() < until) return found;
    }
  }

  async #answer(response: Response, found: JobOutcome | undefined): Promise<void> {
    const failure =
      this.#closing.signal.aborted && found !== undefined && !hasEnded(found.job)
        ? SERVER_STOPS
        : failureOf(found);
    if (failure !== undefined) return sendJson(response, failure.status, errorText(failure.error));
    const { job, payloads } = found as JobOutcome;
    sendJson(response, 200, answerText(payloads.output) ?? (await this.#streamed(job)));
  }

  /** A handler that keeps no list of what it yields has only streamed its answer. */
  async #streamed({ endpointId, seq }: Job): Promise<string> {
    const chunks = await this.#parts.queue.streams.read(endpointId, seq, 0, LARGEST_ANSWER);
    const values = chunks.map(({ text }) => memberText(text, 'output') ?? 'null');
    return values.length === 1
      ? (values[0] ?? 'null')
      : values.length === 0
        ? 'null'
        : `[${values.join(',')}]`;
  }
}
