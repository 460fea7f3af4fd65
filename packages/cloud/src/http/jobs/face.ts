import { createHash } from 'node:crypto';
import type { FastifyBaseLogger } from 'fastify';
import type { LogLine } from '../../engines/logs/log-line.ts';
import { seqOf } from '../../jobs/identity.ts';
import type { JobQueue, SubmitRequest } from '../../jobs/queue.ts';
import { clamp, TIME_TO_LIVE } from '../../jobs/submission.ts';
import type { RequestTerms } from '../../jobs/submission.ts';
import type { Webhooks } from '../../jobs/webhooks/webhooks.ts';
import type { EndpointDirectory } from '../../resources/endpoints/directory.ts';
import { checkGrant } from '../../resources/keys/gate.ts';
import type { Gate } from '../../resources/keys/gate.ts';
import { JOB_STATUSES } from '../../store/job-records.ts';
import type { Job, JobOutcome, JobStatus, WholeJob } from '../../store/job-records.ts';
import type { ApiKey, Endpoint } from '../../store/records.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import { bearerOrBareKey } from '../bearer.ts';
import { asBerthError } from '../failures.ts';
import { departure, goneSignal, inPieces, readBody, readUtf8, sendJson, wholeUtf8 } from '../raw.ts';
import type { PlainRequest, PlainResponse } from '../raw.ts';
import type { JobAddress } from './address.ts';
import { briefText, statusText } from './answers.ts';
import { wantsEnvelope } from './envelope.ts';
import { failJob } from './failures.ts';
import type { JobRateLimits } from './rate-limits.ts';
import { waitingReason } from './reason.ts';
import { readMilliseconds, readTerms, readWait } from './request.ts';
import { sendRequests } from './requests.ts';
import { drainStream, followStream, readEventId, STREAM_HOLD_MS } from './stream.ts';

const MEGABYTE = 1024 * 1024;
const RUN_LIMIT = 10 * MEGABYTE;
export const RUNSYNC_LIMIT = 20 * MEGABYTE;
const SMALL_BODY = MEGABYTE;
const LONGEST_IDEMPOTENCY_KEY = 255;
const NO_QUERY = new URLSearchParams();
/** A reader of a job's log is let go after this long. */
const LONGEST_LOG_MS = 60 * 60_000;
/** What a handler printed last may come after its result. */
const LOG_TAIL_MS = 500;
/** How many entries a list shows. */
const LIST_LENGTH = { minimum: 1, maximum: 1000, default: 100 };
const STREAM_HOLD = { minimum: 0, maximum: 90_000 };

export interface JobFaceParts {
  queue: JobQueue;
  webhooks: Webhooks;
  endpoints: EndpointDirectory;
  gate: Gate;
  limits: JobRateLimits | undefined;
  log: FastifyBaseLogger;
  /** Why an endpoint has no workers, where that is known. */
  fleetReason(endpoint: Endpoint): string | undefined;
  /** What the worker of a job wrote while it had it. */
  jobLogs?(job: Job, signal: AbortSignal): AsyncIterable<LogLine>;
  /** Workers that nobody has heard of yet, or that do not come up. */
  fleetCounts?(
    endpoint: Endpoint,
  ): { initializing: number; throttled: number; unhealthy: number } | undefined;
}

interface Call {
  request: PlainRequest;
  response: PlainResponse;
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
  need: 'read' | 'write';
  handle(call: Call): Promise<void>;
}

/** The client side of a queue endpoint: `/v2/{endpoint_id}/run` and its neighbours. */
export class JobFace {
  readonly #parts: JobFaceParts;
  readonly #operations: Readonly<Record<string, JobOperation>>;

  constructor(parts: JobFaceParts) {
    this.#parts = parts;
    this.#operations = {
      run: { methods: ['POST'], need: 'write', handle: (call) => this.#run(call) },
      runsync: { methods: ['POST'], need: 'write', handle: (call) => this.#runSync(call) },
      // The local server of the Python SDK takes POST here, so code that was written against it does too.
      status: { methods: ['GET', 'POST'], segments: 1, need: 'read', handle: (call) => this.#status(call) },
      'status-sync': {
        methods: ['GET', 'POST'],
        segments: 1,
        need: 'read',
        handle: (call) => this.#statusSync(call),
      },
      stream: { methods: ['GET', 'POST'], segments: 1, need: 'read', handle: (call) => this.#stream(call) },
      cancel: { methods: ['POST'], segments: 1, need: 'write', handle: (call) => this.#cancel(call) },
      retry: { methods: ['POST'], segments: 1, need: 'write', handle: (call) => this.#retry(call) },
      'purge-queue': { methods: ['POST'], need: 'write', handle: (call) => this.#purge(call) },
      health: { methods: ['GET'], need: 'read', handle: (call) => this.#health(call) },
      // flash looks here, again and again, for the workers that may have its job.
      metrics: { methods: ['GET'], need: 'read', handle: (call) => this.#metrics(call) },
      requests: { methods: ['GET'], need: 'read', handle: (call) => this.#requests(call) },
      logs: { methods: ['GET'], segments: 1, need: 'read', handle: (call) => this.#logs(call) },
      webhooks: {
        methods: ['GET', 'POST'],
        segments: 2,
        need: 'write',
        handle: (call) => this.#webhooks(call),
      },
    };
  }

  handles(operation: string): boolean {
    return Object.hasOwn(this.#operations, operation);
  }

  async serve(request: PlainRequest, response: PlainResponse, address: JobAddress): Promise<void> {
    const { gate, endpoints } = this.#parts;
    let leave: (() => void) | undefined;
    try {
      const operation = this.#operations[address.operation] as JobOperation;
      const presented = bearerOrBareKey(request.headers.authorization);
      const key = gate.known(presented) ?? (await gate.identify(presented));
      const endpoint = endpoints.known(address.endpointId) ?? (await endpoints.find(address.endpointId));
      if (endpoint === undefined || endpoint.accountId !== key.accountId)
        throw notFound('endpoint', address.endpointId);
      if (address.rest.length > (operation.segments ?? 0)) throw noSuchAddress();
      if (!operation.methods.includes(request.method ?? '')) {
        throw new BerthError(
          'method',
          `${request.method} is not allowed here; allowed: ${operation.methods.join(', ')}`,
          { headers: { allow: operation.methods.join(', ') } },
        );
      }
      checkGrant(key, { family: 'serverless', need: operation.need, endpointId: endpoint.id });
      if (endpoint.type !== 'QUEUE')
        throw new BerthError('rule', 'not allowed for a load balancing endpoint: it has no queue');
      leave = this.#parts.limits?.enter(
        key.accountId,
        endpoint.id,
        address.operation,
        () => this.#parts.queue.presence.here(endpoint.id).filter(({ busy }) => busy > 0).length,
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
      if ((request.destroyed && !request.complete) || (response.destroyed && this.#parts.queue.stopping))
        return;
      if (!request.readableEnded) request.resume();
      failJob(response, asBerthError(error, this.#parts.log, address.endpointId));
    } finally {
      leave?.();
      // A connection that is kept would keep a server that stops from ending.
      if (this.#parts.queue.stopping) request.socket.destroySoon();
    }
  }

  async #run(call: Call): Promise<void> {
    const { request, response, endpoint, key } = call;
    const text = wholeUtf8(request, RUN_LIMIT) ?? (await this.#longBody(call, RUN_LIMIT));
    const job = await this.#parts.queue.submit(submission(request, endpoint, key, text, readTerms(text)));
    sendJson(response, 200, briefText(job));
  }

  async #runSync(call: Call): Promise<void> {
    const { request, response, endpoint, key, query } = call;
    const wait = readWait(query);
    const gone = departure(response);
    const text = wholeUtf8(request, RUNSYNC_LIMIT) ?? (await this.#longBody(call, RUNSYNC_LIMIT));
    const terms = { ...readTerms(text), sync: { wait, waitGiven: query.has('wait') } };
    const { job, outcome } = await this.#parts.queue.submitAndWait(
      submission(request, endpoint, key, text, terms),
      wait,
      gone,
    );
    await this.#show(response, endpoint, outcome ?? missing(job.id));
  }

  /** A body that comes in pieces takes its time, in which the key may be revoked and the endpoint removed. */
  async #longBody({ request, endpoint }: Call, limit: number): Promise<string> {
    const { gate, endpoints } = this.#parts;
    const text = await readUtf8(request, limit);
    checkGrant(await gate.identify(bearerOrBareKey(request.headers.authorization)), {
      family: 'serverless',
      need: 'write',
      endpointId: endpoint.id,
    });
    if ((await endpoints.find(endpoint.id)) === undefined) throw notFound('endpoint', endpoint.id);
    return text;
  }

  async #status({ response, endpoint, key, rest, query }: Call): Promise<void> {
    const { seq, id } = jobOf(rest);
    const ttl = query.get('ttl');
    if (ttl !== null) {
      // Looking is for everyone who may read; to shorten a life is not.
      checkGrant(key, { family: 'serverless', need: 'write', endpointId: endpoint.id });
      const milliseconds = clamp(readMilliseconds(ttl, 'ttl'), TIME_TO_LIVE);
      this.#same(await this.#find(endpoint.id, seq, id), id);
      await this.#parts.queue.setTimeToLive(endpoint.id, seq, milliseconds);
    }
    await this.#show(response, endpoint, await this.#find(endpoint.id, seq, id));
  }

  async #statusSync({ response, endpoint, rest, query }: Call): Promise<void> {
    const { seq, id } = jobOf(rest);
    await this.#show(
      response,
      endpoint,
      this.#same(
        await this.#parts.queue.waitForEnd(endpoint.id, seq, readWait(query), departure(response)),
        id,
      ),
    );
  }

  async #stream({ request, response, endpoint, rest, query }: Call): Promise<void> {
    const { seq, id } = jobOf(rest);
    const gone = goneSignal(response);
    const { queue } = this.#parts;
    if (request.headers.accept?.includes('text/event-stream') === true) {
      return followStream(
        queue,
        endpoint.id,
        seq,
        id,
        readEventId(request.headers['last-event-id']?.toString()),
        inPieces(response),
        gone,
      );
    }
    const hold = readWait(query, STREAM_HOLD_MS, STREAM_HOLD);
    const { status, chunks } = await drainStream(queue, endpoint.id, seq, id, hold, gone);
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
    await readBody(request, SMALL_BODY);
    const { seq, id } = jobOf(rest);
    await this.#find(endpoint.id, seq, id);
    const job = await this.#parts.queue.cancel(endpoint.id, seq);
    if (job === undefined) throw missingJob(id);
    sendJson(response, 200, briefText(job));
  }

  async #retry({ request, response, endpoint, rest }: Call): Promise<void> {
    await readBody(request, SMALL_BODY);
    const { seq, id } = jobOf(rest);
    await this.#find(endpoint.id, seq, id);
    const done = await this.#parts.queue.retry(endpoint.id, seq);
    if (done === undefined) throw missingJob(id);
    if (!done.changed)
      throw new BerthError(
        'state',
        `only a FAILED or TIMED_OUT job can be retried; this one is ${done.before.status}`,
      );
    sendJson(response, 200, briefText(done.after));
  }

  async #purge({ request, response, endpoint }: Call): Promise<void> {
    await readBody(request, SMALL_BODY);
    const removed = await this.#parts.queue.purge(endpoint.id);
    sendJson(response, 200, `{"removed":${removed},"status":"completed"}`);
  }

  async #health({ response, endpoint }: Call): Promise<void> {
    const [{ completed, failed, inProgress, inQueue, retried }, { counters }] = await Promise.all([
      this.#parts.queue.counts(endpoint.id),
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
    const workers = await this.#parts.queue.workers(endpoint.id);
    const healthy = workers.filter(({ unhealthy }) => unhealthy === null);
    const running = healthy.filter(({ busy }) => busy > 0).length;
    const { initializing = 0, throttled = 0, unhealthy = 0 } = this.#parts.fleetCounts?.(endpoint) ?? {};
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
    const limit = clamp(readCount(query, 'limit', LIST_LENGTH.default), LIST_LENGTH);
    const offset = Math.max(0, readCount(query, 'offset', 0));
    const pieces = this.#parts.queue.list(endpoint.id, {
      ...(status !== null && { status: status as JobStatus }),
      limit,
      offset,
    });
    await sendRequests(response, pieces, goneSignal(response));
  }

  /** What the worker wrote while it ran the job: a list, or as events that go on while it runs. */
  async #logs({ request, response, endpoint, rest }: Call): Promise<void> {
    const { seq, id } = jobOf(rest);
    const { job } = await this.#find(endpoint.id, seq, id);
    const gone = goneSignal(response);
    const live = request.headers.accept?.includes('text/event-stream') === true;
    const lines =
      this.#parts.jobLogs?.(live ? job : { ...job, endedAt: job.endedAt ?? Date.now() }, gone) ?? [];
    if (!live) {
      const found: string[] = [];
      for await (const { ts, source, line } of lines)
        found.push(JSON.stringify({ ts: new Date(ts).toISOString(), source, line }));
      return sendJson(response, 200, `{"logs":[${found.join(',')}]}`);
    }
    const events = inPieces(response);
    events.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    });
    // The log of a worker goes on after the job; whoever follows the job is let go with it.
    if (job.endedAt === null) {
      const ended = this.#parts.queue.waitForEnd(endpoint.id, seq, LONGEST_LOG_MS, gone);
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
      if (jobId !== null && seqOf(jobId) === undefined) return sendJson(response, 200, '{"deliveries":[]}');
      const found = await this.#parts.webhooks.list(endpoint.id, {
        limit: clamp(readCount(query, 'limit', LIST_LENGTH.default), LIST_LENGTH),
        ...(jobId !== null && { jobId }),
      });
      return sendJson(
        response,
        200,
        JSON.stringify({ deliveries: found.map(({ accountId: _, ...shown }) => shown) }),
      );
    }
    if (request.method !== 'POST' || id === undefined || action !== 'redeliver') throw noSuchAddress();
    await readBody(request, SMALL_BODY);
    const { body: _, accountId: __, ...shown } = await this.#parts.webhooks.redeliver(endpoint.id, id);
    sendJson(response, 200, JSON.stringify(shown));
  }

  async #find(endpointId: string, seq: number, id: string): Promise<WholeJob> {
    return this.#same(await this.#parts.queue.find(endpointId, seq), id);
  }

  /** Answers with the job, and with why it waits. Where the caller has left, nobody asks. */
  async #show(response: PlainResponse, endpoint: Endpoint, shown: JobOutcome): Promise<void> {
    if (response.destroyed) return;
    const reason =
      shown.job.status === 'IN_QUEUE'
        ? await waitingReason(this.#parts.queue, shown.job, () => this.#parts.fleetReason(endpoint))
        : undefined;
    sendJson(response, 200, statusText(shown, reason));
  }

  /** The number inside an id finds a job; the whole id must be its own. */
  #same<Found extends JobOutcome>(found: Found | undefined, id: string): Found {
    if (found === undefined || found.job.id !== id) throw missingJob(id);
    return found;
  }
}

function jobOf([id = '']: string[]): { seq: number; id: string } {
  const seq = seqOf(id);
  if (seq === undefined) throw missingJob(id);
  return { seq, id };
}

function noSuchAddress(): BerthError {
  return new BerthError('no-route', 'no such address');
}

function missingJob(id: string): BerthError {
  return new BerthError(
    'not-found',
    `job not found: ${JSON.stringify(id.slice(0, 64))} is unknown or its result has expired`,
  );
}

function missing(id: string): never {
  throw missingJob(id);
}

/** However large or small: it is moved into its bounds. */
function readCount(query: URLSearchParams, name: string, fallback: number): number {
  const text = query.get(name);
  if (text === null) return fallback;
  if (!/^-?\d+$/.test(text)) throw new BerthError('rule', `${name} must be a whole number`);
  return Number(text);
}

function submission(
  request: PlainRequest,
  endpoint: Endpoint,
  key: ApiKey,
  text: string,
  terms: RequestTerms,
): SubmitRequest {
  const given = request.headers['idempotency-key'];
  const idempotencyKey = typeof given === 'string' && given !== '' ? given : undefined;
  if (idempotencyKey !== undefined && idempotencyKey.length > LONGEST_IDEMPOTENCY_KEY)
    throw new BerthError('rule', `an Idempotency-Key has at most ${LONGEST_IDEMPOTENCY_KEY} characters`);
  return {
    endpoint,
    accountId: key.accountId,
    request: text,
    terms,
    ...(idempotencyKey !== undefined && {
      idempotency: { key: idempotencyKey, bodyHash: createHash('sha256').update(text).digest('hex') },
    }),
  };
}
