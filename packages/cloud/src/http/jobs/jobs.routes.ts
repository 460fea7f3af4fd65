import { createHash } from 'node:crypto';
import type { FastifyBaseLogger } from 'fastify';
import type { LogLine } from '../../domain/log-line.ts';
import { seqFromJobId } from '../../domain/job-ids.ts';
import type { JobQueue, SubmitRequest } from '../../queue/job-queue.ts';
import { clamp } from '../../queue/job-submission.ts';
import type { JobOptions } from '../../queue/job-submission.ts';
import type { WebhookDeliveries } from '../../queue/webhooks/webhook-deliveries.ts';
import type { EndpointCache } from '../../resources/endpoints/endpoint-cache.ts';
import { checkScope } from '../../auth/authenticator.ts';
import type { Authenticator } from '../../auth/authenticator.ts';
import { JOB_STATUSES } from '../../domain/job-records.ts';
import type { Job, JobOutcome, JobStatus, JobWithPayloads } from '../../domain/job-records.ts';
import type { ApiKey, Endpoint } from '../../domain/records.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import { bearerOrBareKey } from '../../auth/bearer.ts';
import { authenticateForEndpoint } from '../../auth/endpoint-access.ts';
import { toBerthError } from '../http.errors.ts';
import {
  cancelOnClose,
  abortOnClose,
  asStreamingResponse,
  readBody,
  readUtf8Body,
  sendJson,
  bufferedUtf8Body,
} from '../raw-http.ts';
import type { BasicRequest, BasicResponse } from '../raw-http.ts';
import type { JobUrl } from './job-url.ts';
import { jobSummaryJson, jobStatusJson } from './job-json.ts';
import { wantsEnvelope } from './stream-envelope.ts';
import { sendJobError } from './jobs.errors.ts';
import type { JobRateLimits } from './job-rate-limits.ts';
import { waitingReason } from './waiting-reason.ts';
import {
  parseMilliseconds,
  parseJobRequest,
  parseWait,
  MAX_RUN_BODY_BYTES,
  MAX_RUNSYNC_BODY_BYTES,
} from './job-request.ts';
import { sendJobList } from './job-list-response.ts';
import { readStreamPage, sendStreamEvents, parseEventId, DEFAULT_STREAM_WAIT_MS } from './job-stream.ts';
import { JOB_TTL_MS, JOB_LIST_LIMIT, DEFAULT_JOB_LIST_LIMIT, STREAM_WAIT_MS } from '../../domain/limits.ts';

const MAX_SMALL_BODY_BYTES = 1024 * 1024;
const MAX_IDEMPOTENCY_KEY_LENGTH = 255;
const NO_QUERY = new URLSearchParams();
/** A reader of a job's log is let go after this long. */
const MAX_LOG_FOLLOW_MS = 60 * 60_000;
/** What a handler printed last may come after its result. */
const LOG_TAIL_MS = 500;

export interface JobRoutesDeps {
  queue: JobQueue;
  webhooks: WebhookDeliveries;
  endpoints: EndpointCache;
  authenticator: Authenticator;
  rateLimits: JobRateLimits | undefined;
  log: FastifyBaseLogger;
  /** Why an endpoint has no workers, where that is known. */
  noWorkersReason(endpoint: Endpoint): string | undefined;
  /** What the worker of a job wrote while it had it. */
  jobLogs?(job: Job, signal: AbortSignal): AsyncIterable<LogLine>;
  /** Workers that nobody has heard of yet, or that do not come up. */
  workerCounts?(
    endpoint: Endpoint,
  ): { initializing: number; throttled: number; unhealthy: number } | undefined;
}

interface Call {
  request: BasicRequest;
  response: BasicResponse;
  endpoint: Endpoint;
  key: ApiKey;
  /** What follows the operation in the path. */
  rest: string[];
  query: URLSearchParams;
}

interface JobOperation {
  methods: string[];
  /** How many segments may follow it in the path; none where it is not said. */
  segments?: number;
  mode: 'read' | 'write';
  handle(call: Call): Promise<void>;
}

/** The client side of a queue endpoint: `/v2/{endpoint_id}/run` and its neighbours. */
export class JobRoutes {
  readonly #deps: JobRoutesDeps;
  readonly #operations: Readonly<Record<string, JobOperation>>;

  constructor(deps: JobRoutesDeps) {
    this.#deps = deps;
    this.#operations = {
      run: { methods: ['POST'], mode: 'write', handle: (call) => this.#run(call) },
      runsync: { methods: ['POST'], mode: 'write', handle: (call) => this.#runSync(call) },
      // The local server of the Python SDK takes POST here, so code that was written against it does too.
      status: { methods: ['GET', 'POST'], segments: 1, mode: 'read', handle: (call) => this.#status(call) },
      'status-sync': {
        methods: ['GET', 'POST'],
        segments: 1,
        mode: 'read',
        handle: (call) => this.#statusSync(call),
      },
      stream: { methods: ['GET', 'POST'], segments: 1, mode: 'read', handle: (call) => this.#stream(call) },
      cancel: { methods: ['POST'], segments: 1, mode: 'write', handle: (call) => this.#cancel(call) },
      retry: { methods: ['POST'], segments: 1, mode: 'write', handle: (call) => this.#retry(call) },
      'purge-queue': { methods: ['POST'], mode: 'write', handle: (call) => this.#purge(call) },
      health: { methods: ['GET'], mode: 'read', handle: (call) => this.#health(call) },
      // flash looks here, again and again, for the workers that may have its job.
      metrics: { methods: ['GET'], mode: 'read', handle: (call) => this.#metrics(call) },
      requests: { methods: ['GET'], mode: 'read', handle: (call) => this.#requests(call) },
      logs: { methods: ['GET'], segments: 1, mode: 'read', handle: (call) => this.#logs(call) },
      webhooks: {
        methods: ['GET', 'POST'],
        segments: 2,
        mode: 'write',
        handle: (call) => this.#webhooks(call),
      },
    };
  }

  handles(operation: string): boolean {
    return Object.hasOwn(this.#operations, operation);
  }

  async serve(request: BasicRequest, response: BasicResponse, address: JobUrl): Promise<void> {
    let leave: (() => void) | undefined;
    try {
      const operation = this.#operations[address.operation] as JobOperation;
      const token = bearerOrBareKey(request.headers.authorization);
      const { key, endpoint } = await authenticateForEndpoint(this.#deps, token, address.endpointId);
      if (address.rest.length > (operation.segments ?? 0)) throw noSuchRoute();
      if (!operation.methods.includes(request.method ?? '')) {
        throw new BerthError(
          'method',
          `${request.method} is not allowed here; allowed: ${operation.methods.join(', ')}`,
          { headers: { allow: operation.methods.join(', ') } },
        );
      }
      checkScope(key, { scope: 'serverless', mode: operation.mode, endpointId: endpoint.id });
      if (endpoint.type !== 'QUEUE')
        throw new BerthError('rule', 'not allowed for a load balancing endpoint: it has no queue');
      leave = this.#deps.rateLimits?.acquire(
        key.accountId,
        endpoint.id,
        address.operation,
        () => this.#deps.queue.heartbeats.liveWorkers(endpoint.id).filter(({ busy }) => busy > 0).length,
      );
      await operation.handle({
        request,
        response,
        endpoint,
        key,
        rest: address.rest,
        query: address.query === '' ? NO_QUERY : new URLSearchParams(address.query),
      });
    } catch (error) {
      // Whoever broke off in the middle of a request waits for no answer, nor does whoever left a server that stops: its store may be closed by now.
      if ((request.destroyed && !request.complete) || (response.destroyed && this.#deps.queue.isClosing))
        return;
      if (!request.readableEnded) request.resume();
      sendJobError(response, toBerthError(error, this.#deps.log, address.endpointId));
    } finally {
      leave?.();
      // A connection that is kept would keep a server that stops from ending.
      if (this.#deps.queue.isClosing) request.socket.destroySoon();
    }
  }

  async #run(call: Call): Promise<void> {
    const { request, response, endpoint, key } = call;
    const text =
      bufferedUtf8Body(request, MAX_RUN_BODY_BYTES) ?? (await this.#longBody(call, MAX_RUN_BODY_BYTES));
    const job = await this.#deps.queue.submit(
      submission(request, endpoint, key, text, parseJobRequest(text)),
    );
    sendJson(response, 200, jobSummaryJson(job));
  }

  async #runSync(call: Call): Promise<void> {
    const { request, response, endpoint, key, query } = call;
    const wait = parseWait(query);
    const gone = cancelOnClose(response);
    const text =
      bufferedUtf8Body(request, MAX_RUNSYNC_BODY_BYTES) ??
      (await this.#longBody(call, MAX_RUNSYNC_BODY_BYTES));
    const terms = { ...parseJobRequest(text), sync: { wait, waitGiven: query.has('wait') } };
    const { job, outcome } = await this.#deps.queue.submitAndWait(
      submission(request, endpoint, key, text, terms),
      wait,
      gone,
    );
    await this.#show(response, endpoint, outcome ?? throwMissingJob(job.id));
  }

  /** A body that comes in pieces takes its time, in which the key may be revoked and the endpoint removed. */
  async #longBody({ request, endpoint }: Call, limit: number): Promise<string> {
    const { authenticator, endpoints } = this.#deps;
    const text = await readUtf8Body(request, limit);
    checkScope(await authenticator.authenticate(bearerOrBareKey(request.headers.authorization)), {
      scope: 'serverless',
      mode: 'write',
      endpointId: endpoint.id,
    });
    if ((await endpoints.find(endpoint.id)) === undefined) throw notFound('endpoint', endpoint.id);
    return text;
  }

  async #status({ response, endpoint, key, rest, query }: Call): Promise<void> {
    const { seq, id } = parseJobId(rest);
    const ttl = query.get('ttl');
    if (ttl !== null) {
      // Looking is for everyone who may read; to shorten a life is not.
      checkScope(key, { scope: 'serverless', mode: 'write', endpointId: endpoint.id });
      const milliseconds = clamp(parseMilliseconds(ttl, 'ttl'), JOB_TTL_MS);
      this.#same(await this.#find(endpoint.id, seq, id), id);
      await this.#deps.queue.setTimeToLive(endpoint.id, seq, milliseconds);
    }
    await this.#show(response, endpoint, await this.#find(endpoint.id, seq, id));
  }

  async #statusSync({ response, endpoint, rest, query }: Call): Promise<void> {
    const { seq, id } = parseJobId(rest);
    await this.#show(
      response,
      endpoint,
      this.#same(
        await this.#deps.queue.waitForEnd(endpoint.id, seq, parseWait(query), cancelOnClose(response)),
        id,
      ),
    );
  }

  async #stream({ request, response, endpoint, rest, query }: Call): Promise<void> {
    const { seq, id } = parseJobId(rest);
    const gone = abortOnClose(response);
    const { queue } = this.#deps;
    if (request.headers.accept?.includes('text/event-stream') === true) {
      return sendStreamEvents(
        queue,
        endpoint.id,
        seq,
        id,
        parseEventId(request.headers['last-event-id']?.toString()),
        asStreamingResponse(response),
        gone,
      );
    }
    const hold = parseWait(query, DEFAULT_STREAM_WAIT_MS, STREAM_WAIT_MS);
    const { status, chunks } = await readStreamPage(queue, endpoint.id, seq, id, hold, gone);
    const list = `[${chunks.map((chunk) => chunk.text).join(',')}]`;
    sendJson(
      response,
      200,
      wantsEnvelope(request.method ?? '', request.headers, query)
        ? `{"id":"${id}","status":"${status}","stream":${list}}`
        : list,
    );
  }

  async #cancel({ request, response, endpoint, rest }: Call): Promise<void> {
    await readBody(request, MAX_SMALL_BODY_BYTES);
    const { seq, id } = parseJobId(rest);
    await this.#find(endpoint.id, seq, id);
    const job = await this.#deps.queue.cancel(endpoint.id, seq);
    if (job === undefined) throw missingJob(id);
    sendJson(response, 200, jobSummaryJson(job));
  }

  async #retry({ request, response, endpoint, rest }: Call): Promise<void> {
    await readBody(request, MAX_SMALL_BODY_BYTES);
    const { seq, id } = parseJobId(rest);
    await this.#find(endpoint.id, seq, id);
    const done = await this.#deps.queue.retry(endpoint.id, seq);
    if (done === undefined) throw missingJob(id);
    if (!done.changed)
      throw new BerthError(
        'state',
        `only a FAILED or TIMED_OUT job can be retried; this one is ${done.before.status}`,
      );
    sendJson(response, 200, jobSummaryJson(done.after));
  }

  async #purge({ request, response, endpoint }: Call): Promise<void> {
    await readBody(request, MAX_SMALL_BODY_BYTES);
    const removed = await this.#deps.queue.purge(endpoint.id);
    sendJson(response, 200, `{"removed":${removed},"status":"completed"}`);
  }

  async #health({ response, endpoint }: Call): Promise<void> {
    const [{ completed, failed, inProgress, inQueue, retried }, { counters }] = await Promise.all([
      this.#deps.queue.counts(endpoint.id),
      this.#workers(endpoint),
    ]);
    sendJson(
      response,
      200,
      JSON.stringify({ jobs: { completed, failed, inProgress, inQueue, retried }, workers: counters }),
    );
  }

  async #metrics({ response, endpoint }: Call): Promise<void> {
    const { counters, ready } = await this.#workers(endpoint);
    sendJson(response, 200, JSON.stringify({ workers: counters, readyWorkers: ready }));
  }

  async #workers(endpoint: Endpoint) {
    const workers = await this.#deps.queue.workers(endpoint.id);
    const healthy = workers.filter(({ unhealthy }) => unhealthy === null);
    const running = healthy.filter(({ busy }) => busy > 0).length;
    const { initializing = 0, throttled = 0, unhealthy = 0 } = this.#deps.workerCounts?.(endpoint) ?? {};
    const counters = {
      idle: healthy.length - running,
      initializing,
      ready: healthy.length,
      running,
      throttled,
      unhealthy: Math.max(unhealthy, workers.length - healthy.length),
    };
    return { counters, ready: healthy.map(({ workerId }) => workerId) };
  }

  async #requests({ response, endpoint, query }: Call): Promise<void> {
    const status = query.get('status');
    if (status !== null && !JOB_STATUSES.includes(status as JobStatus))
      throw new BerthError('rule', `status must be one of ${JOB_STATUSES.join(', ')}`);
    const limit = clamp(parseCount(query, 'limit', DEFAULT_JOB_LIST_LIMIT), JOB_LIST_LIMIT);
    const offset = Math.max(0, parseCount(query, 'offset', 0));
    const pieces = this.#deps.queue.list(endpoint.id, {
      ...(status !== null && { status: status as JobStatus }),
      limit,
      offset,
    });
    await sendJobList(response, pieces, abortOnClose(response));
  }

  /** What the worker wrote while it ran the job: a list, or as events that go on while it runs. */
  async #logs({ request, response, endpoint, rest }: Call): Promise<void> {
    const { seq, id } = parseJobId(rest);
    const { job } = await this.#find(endpoint.id, seq, id);
    const gone = abortOnClose(response);
    const live = request.headers.accept?.includes('text/event-stream') === true;
    const lines =
      this.#deps.jobLogs?.(live ? job : { ...job, endedAt: job.endedAt ?? Date.now() }, gone) ?? [];
    if (!live) {
      const found: string[] = [];
      for await (const { ts, source, line } of lines)
        found.push(JSON.stringify({ ts: new Date(ts).toISOString(), source, line }));
      return sendJson(response, 200, `{"logs":[${found.join(',')}]}`);
    }
    const events = asStreamingResponse(response);
    events.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    });
    // The log of a worker goes on after the job; whoever follows the job is let go with it.
    if (job.endedAt === null) {
      const ended = this.#deps.queue.waitForEnd(endpoint.id, seq, MAX_LOG_FOLLOW_MS, gone);
      // Where that cannot be known, it comes back and asks again.
      void ended.catch(() => undefined).then(() => setTimeout(() => events.end(), LOG_TAIL_MS));
    }
    for await (const { ts, seq: number, source, line } of lines) {
      if (events.destroyed || events.writableEnded) return;
      const at = new Date(ts).toISOString();
      events.write(`id: ${at}/${number}\ndata: ${JSON.stringify({ ts: at, source, line })}\n\n`);
    }
    events.end();
  }

  /** `GET webhooks[?jobId=]`: the delivery log; `POST webhooks/{deliveryId}/redeliver`: once more. */
  async #webhooks({ request, response, endpoint, rest, query }: Call): Promise<void> {
    const [id, action] = rest;
    if (request.method === 'GET' && id === undefined) {
      const jobId = query.get('jobId');
      // What is no id of a job is not looked for: PostgreSQL cannot be asked for a text with a NUL.
      if (jobId !== null && seqFromJobId(jobId) === undefined)
        return sendJson(response, 200, '{"deliveries":[]}');
      const found = await this.#deps.webhooks.list(endpoint.id, {
        limit: clamp(parseCount(query, 'limit', DEFAULT_JOB_LIST_LIMIT), JOB_LIST_LIMIT),
        ...(jobId !== null && { jobId }),
      });
      return sendJson(
        response,
        200,
        JSON.stringify({ deliveries: found.map(({ accountId: _, ...shown }) => shown) }),
      );
    }
    if (request.method !== 'POST' || id === undefined || action !== 'redeliver') throw noSuchRoute();
    await readBody(request, MAX_SMALL_BODY_BYTES);
    const { body: _, accountId: __, ...shown } = await this.#deps.webhooks.redeliver(endpoint.id, id);
    sendJson(response, 200, JSON.stringify(shown));
  }

  async #find(endpointId: string, seq: number, id: string): Promise<JobWithPayloads> {
    return this.#same(await this.#deps.queue.find(endpointId, seq), id);
  }

  /** Answers with the job, and with why it waits. Where the caller has left, nobody asks. */
  async #show(response: BasicResponse, endpoint: Endpoint, shown: JobOutcome): Promise<void> {
    if (response.destroyed) return;
    const reason =
      shown.job.status === 'IN_QUEUE'
        ? await waitingReason(this.#deps.queue, shown.job, () => this.#deps.noWorkersReason(endpoint))
        : undefined;
    sendJson(response, 200, jobStatusJson(shown, reason));
  }

  /** The number inside an id finds a job; the whole id must be its own. */
  #same<Found extends JobOutcome>(found: Found | undefined, id: string): Found {
    if (found === undefined || found.job.id !== id) throw missingJob(id);
    return found;
  }
}

function parseJobId([id = '']: string[]): { seq: number; id: string } {
  const seq = seqFromJobId(id);
  if (seq === undefined) throw missingJob(id);
  return { seq, id };
}

function noSuchRoute(): BerthError {
  return new BerthError('no-route', 'no such address');
}

function missingJob(id: string): BerthError {
  return new BerthError(
    'not-found',
    `job not found: ${JSON.stringify(id.slice(0, 64))} is unknown or its result has expired`,
  );
}

function throwMissingJob(id: string): never {
  throw missingJob(id);
}

/** However large or small: it is moved into its bounds. */
function parseCount(query: URLSearchParams, name: string, fallback: number): number {
  const text = query.get(name);
  if (text === null) return fallback;
  if (!/^-?\d+$/.test(text)) throw new BerthError('rule', `${name} must be a whole number`);
  return Number(text);
}

function submission(
  request: BasicRequest,
  endpoint: Endpoint,
  key: ApiKey,
  text: string,
  terms: JobOptions,
): SubmitRequest {
  const given = request.headers['idempotency-key'];
  const idempotencyKey = typeof given === 'string' && given !== '' ? given : undefined;
  if (idempotencyKey !== undefined && idempotencyKey.length > MAX_IDEMPOTENCY_KEY_LENGTH)
    throw new BerthError('rule', `an Idempotency-Key has at most ${MAX_IDEMPOTENCY_KEY_LENGTH} characters`);
  return {
    endpoint,
    accountId: key.accountId,
    request: text,
    options: terms,
    ...(idempotencyKey !== undefined && {
      idempotency: { key: idempotencyKey, bodyHash: createHash('sha256').update(text).digest('hex') },
    }),
  };
}
