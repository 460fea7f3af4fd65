import type { FastifyBaseLogger } from 'fastify';
import { seqFromJobId } from '../../domain/job-ids.ts';
import { withMember } from '../../support/json-text.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import type { EndpointCache } from '../../resources/endpoints/endpoint-cache.ts';
import { isAccessError } from '../../auth/authenticator.ts';
import type { Authenticator } from '../../auth/authenticator.ts';
import type { OpenAccesses } from '../../auth/open-access.ts';
import type { Endpoint } from '../../domain/records.ts';
import { BerthError } from '../../support/errors.ts';
import { bearerOrBareKey } from '../../auth/bearer.ts';
import { authorizeWorker } from '../../auth/endpoint-access.ts';
import type { WorkerAccess } from '../../auth/endpoint-access.ts';
import { claimConnection } from '../connection-limit.ts';
import { toBerthError } from '../http.errors.ts';
import type { JobUrl } from '../jobs/job-url.ts';
import { sendJobError } from '../jobs/jobs.errors.ts';
import { cancelOnClose, discardRest, readBody, sendJson, sendNoContent } from '../raw-http.ts';
import type { BasicRequest, BasicResponse } from '../raw-http.ts';
import { endWhenRevoked } from '../revocable-response.ts';
import { parseLeaseAndChunkNumber } from './chunk-number.ts';
import { parseLargeJobDone } from '../large-body-parser.ts';
import { parseJobStream } from './worker-posts.ts';
import type { WorkerTokens } from '../../auth/worker-tokens.ts';
import type { TakenJob } from '../../domain/job-records.ts';

/** A long poll is answered before any worker times out: the oldest in use wait 30 s. */
export const LONG_POLL_MS = 24_000;
/**
 * A worker that is answered at once asks again at once, thousands of times a second. So errors are delayed.
 */
const REFUSAL_DELAY_MS = 2_000;
const RETRY_AFTER_SECONDS = 5;
export const MAX_RESULT_BYTES = 64 * 1024 * 1024;
const MAX_BATCH_SIZE = 1_000;
/** A batch is one string, whose length is limited: beyond this, jobs wait for the next poll. */
const MAX_BATCH_CHARS = 32 * 1024 * 1024;
/** The Python SDK truncates its list of jobs before 65,535 characters without saying so. */
const MAX_UNTRUNCATED_PING_CHARS = 64_000;
/**
 * The number of a chunk in its lease, from a worker that lost its channel, so that no chunk is stored twice.
 */
const CHUNK_HEADER = 'berth-chunk';
/** Worker ids are in URLs, tables and logs. */
const WORKER_ID = /^[^\s\p{Cc}]{1,200}$/u;

export interface WorkerRoutesDeps {
  queue: JobQueue;
  endpoints: EndpointCache;
  authenticator: Authenticator;
  openAccesses: OpenAccesses;
  tokens: WorkerTokens;
  log: FastifyBaseLogger;
}

interface WorkerOperation {
  method: 'GET' | 'POST';
  handle(call: Call): Promise<void>;
}

interface Call {
  request: BasicRequest;
  response: BasicResponse;
  endpoint: Endpoint;
  workerId: string;
  /** Of the job in the path, if there is one. */
  jobId: string;
  /** Unparsed, since thousands of polls are held at a time. */
  query: string;
}

/** The worker protocol of the public worker SDKs. */
export class WorkerRoutes {
  readonly #deps: WorkerRoutesDeps;
  readonly #operations: Readonly<Record<string, WorkerOperation>>;

  constructor(deps: WorkerRoutesDeps) {
    this.#deps = deps;
    this.#operations = {
      'job-take': { method: 'GET', handle: (call) => this.#take(call, false) },
      'job-take-batch': { method: 'GET', handle: (call) => this.#take(call, true) },
      'job-done': { method: 'POST', handle: (call) => this.#done(call) },
      'job-stream': { method: 'POST', handle: (call) => this.#chunk(call) },
      'job-stop': { method: 'GET', handle: (call) => this.#stops(call) },
      ping: { method: 'GET', handle: (call) => this.#ping(call) },
    };
  }

  handles(operation: string): boolean {
    return Object.hasOwn(this.#operations, operation);
  }

  async serve(request: BasicRequest, response: BasicResponse, url: JobUrl): Promise<void> {
    try {
      const [workerId = '', jobId = ''] = url.rest.map(decodePathSegment);
      const operation = this.#operations[url.operation] as WorkerOperation;
      const { endpoint, key } = await this.authorize(request, url.endpointId, workerId);
      if (key !== undefined) this.#endWhenRevoked(request, response, url.endpointId, workerId, key.expiresAt);
      if (request.method !== operation.method) {
        throw new BerthError(
          'method',
          `${request.method} is not allowed here; allowed: ${operation.method}`,
          { headers: { allow: operation.method } },
        );
      }
      const left = this.#deps.queue.heartbeats.requestStarted(endpoint.id, workerId);
      // It may have disconnected during the authorization.
      if (response.destroyed) left();
      else response.on('close', left);
      await operation.handle({ request, response, endpoint, workerId, jobId, query: url.query });
    } catch (error) {
      // Nobody waits for a response after an aborted request.
      if (request.destroyed && !request.complete) return;
      await this.#sendError(
        request,
        response,
        toBerthError(error, this.#deps.log, url.endpointId),
        url.operation,
      );
    } finally {
      // An open connection would keep the server from stopping.
      if (this.#deps.queue.isClosing) request.socket.destroySoon();
    }
  }

  /** The endpoint, if the token is this worker's or a key that may run things on it. */
  async authorize(request: BasicRequest, endpointId: string, workerId: string): Promise<WorkerAccess> {
    const token = bearerOrBareKey(request.headers.authorization) ?? '';
    if (workerId === '') throw new BerthError('no-route', 'the address names no worker');
    if (!WORKER_ID.test(workerId))
      throw new BerthError(
        'malformed',
        'the address names no valid worker: 1 to 200 characters without spaces',
      );
    const access = await authorizeWorker(this.#deps, token, endpointId, workerId);
    claimConnection(request.socket, access.endpoint.accountId);
    return access;
  }

  /** A worker's own token ends with the worker; a key may be revoked during a long poll. */
  #endWhenRevoked(
    request: BasicRequest,
    response: BasicResponse,
    endpointId: string,
    workerId: string,
    expiresAt: number | null,
  ): void {
    endWhenRevoked(this.#deps.openAccesses, {
      response,
      credential: bearerOrBareKey(request.headers.authorization) ?? '',
      expiresAt,
      authorize: async () => (await this.authorize(request, endpointId, workerId)).key ?? {},
      sendError: (error) => sendJobError(response, error),
    });
  }

  async #take({ request, response, endpoint, workerId, query }: Call, batch: boolean): Promise<void> {
    const { queue } = this.#deps;
    const { idle, size } = parseTakeQuery(query);
    queue.heartbeats.recordTake(endpoint.id, workerId, idle);
    if (batch) queue.heartbeats.recordBatchTake(endpoint.id, workerId);
    const room = batch ? size : queue.takeAhead.roomFor(endpoint.id, workerId, request.headers['user-agent']);
    const taken = await queue.take(endpoint.id, workerId, room, LONG_POLL_MS, cancelOnClose(response));
    if (taken.length === 0) return sendNoContent(response);
    let beyond: TakenJob[];
    try {
      // After a long wait the worker may have lost its access.
      await this.authorize(request, endpoint.id, workerId);
      // Pending events first: a worker that has just disconnected gets nothing.
      await new Promise((resolve) => setImmediate(resolve));
      if (response.destroyed || request.destroyed) return await queue.returnTaken(endpoint.id, taken);
      const sent = taken.slice(0, countThatFit(taken));
      beyond = taken.slice(sent.length);
      if (!batch && sent.length > 1)
        queue.heartbeats.recordTakenTogether(
          endpoint.id,
          workerId,
          sent.map(({ job }) => job),
        );
      const jobs = sent.map(takenJobJson).join(',');
      const answer = batch || sent.length > 1 ? `[${jobs}]` : jobs;
      // Until the response has left this process, the job can be given to another worker.
      let left = false;
      response.on('finish', () => {
        left = true;
      });
      response.on('close', () => {
        if (!left) void this.#returnTaken(endpoint.id, sent);
      });
      sendJson(response, 200, answer);
    } catch (error) {
      // The response is an error without a job.
      await this.#returnTaken(endpoint.id, taken);
      throw error;
    }
    await this.#returnTaken(endpoint.id, beyond);
  }

  /** If that fails, the jobs are requeued when their leases expire. */
  async #returnTaken(endpointId: string, taken: readonly TakenJob[]): Promise<void> {
    try {
      await this.#deps.queue.returnTaken(endpointId, taken);
    } catch (error) {
      this.#deps.log.error({ err: error }, 'a job that did not reach its worker could not be requeued');
    }
  }

  async #done({ request, response, endpoint, workerId, jobId }: Call): Promise<void> {
    const { queue } = this.#deps;
    const seq = seqFromJobId(jobId);
    let body: string;
    try {
      body = await readBody(request, MAX_RESULT_BYTES);
    } catch (error) {
      // A result that is too large must not leave its job running forever.
      if (seq !== undefined && error instanceof BerthError && error.code === 'too-large') {
        await queue.finish(
          endpoint.id,
          seq,
          { workerId, jobId },
          {
            output: null,
            error: JSON.stringify(
              `the result is larger than ${MAX_RESULT_BYTES} bytes; store it elsewhere and return its address`,
            ),
          },
        );
      }
      throw error;
    }
    const post = await parseLargeJobDone(endpoint.accountId, body);
    if (seq !== undefined) {
      if (post.kind === 'progress') await queue.progress(endpoint.id, seq, { workerId, jobId }, post.output);
      else {
        const waited = queue.takeAhead.onResult(endpoint.id, workerId, seq, post.refresh);
        await queue.finish(endpoint.id, seq, { workerId, jobId }, { ...post, waited });
        queue.cancellations.remove(endpoint.id, workerId, jobId);
        if (post.refresh) queue.pauseWorkerAfterResult(endpoint.id, workerId);
      }
    }
    // Late, repeated and unknown posts get the same response: the worker can do nothing about them.
    sendJson(response, 200, '{}');
  }

  async #chunk({ request, response, endpoint, workerId, jobId }: Call): Promise<void> {
    const { queue } = this.#deps;
    const mark = request.headers[CHUNK_HEADER];
    const numbered = parseLeaseAndChunkNumber(String(mark ?? ''));
    if (mark !== undefined && numbered === undefined)
      throw new BerthError('malformed', `${CHUNK_HEADER} is <lease>~<number>`);
    const chunks = parseJobStream(await readBody(request, MAX_RESULT_BYTES));
    const seq = seqFromJobId(jobId);
    if (seq === undefined) return sendJson(response, 200, '{}');
    if (numbered === undefined) await queue.streams.append(endpoint.id, seq, { workerId, jobId }, chunks);
    else
      await queue.streams.appendNumberedWithGaps(
        endpoint.id,
        seq,
        { workerId, lease: numbered.lease },
        { number: numbered.number, texts: chunks },
      );
    sendJson(response, 200, '{}');
  }

  async #stops({ response, endpoint, workerId }: Call): Promise<void> {
    const jobs = await this.#deps.queue.waitForCancellations(
      endpoint.id,
      workerId,
      LONG_POLL_MS,
      cancelOnClose(response),
    );
    if (jobs.length === 0) return sendNoContent(response);
    sendJson(response, 200, JSON.stringify({ jobsToStop: jobs }));
  }

  async #ping({ response, endpoint, workerId, query: text }: Call): Promise<void> {
    const { queue } = this.#deps;
    const query = new URLSearchParams(text);
    const jobs = (query.get('job_id') ?? '').split(',').filter((id) => id !== '');
    if (query.get('status') === 'unhealthy')
      queue.heartbeats.unhealthy(
        endpoint.id,
        workerId,
        `${query.get('check') ?? 'check'}: ${query.get('reason') ?? 'failed'}`.slice(0, 512),
      );
    else {
      const isWhole = query.get('job_ids') !== 'partial' && text.length < MAX_UNTRUNCATED_PING_CHARS;
      queue.heartbeats.recordRunningJobs(endpoint.id, workerId, jobs, isWhole);
      if (isWhole) queue.cancellations.recordRunningJobs(endpoint.id, workerId, jobs);
    }
    sendJson(response, 200, '{}');
  }

  async #sendError(
    request: BasicRequest,
    response: BasicResponse,
    error: BerthError,
    operation: string,
  ): Promise<void> {
    discardRest(request);
    if (error.code === 'method') return sendJobError(response, error);
    const polls = operation === 'job-take' || operation === 'job-take-batch' || operation === 'job-stop';
    if (!polls && !isAccessError(error)) return sendJobError(response, error);
    await new Promise((resolve) => setTimeout(resolve, REFUSAL_DELAY_MS));
    if (polls && !isAccessError(error) && error.code !== 'not-found') {
      return sendJson(response, 429, JSON.stringify({ error: error.message }), {
        'retry-after': String(RETRY_AFTER_SECONDS),
      });
    }
    sendJobError(response, error);
  }
}

/** Whether the worker runs nothing, and how many jobs it can take. */
function parseTakeQuery(text: string): { idle: boolean; size: number } {
  const query = new URLSearchParams(text);
  return {
    idle: query.get('job_in_progress') === '0',
    size: Math.min(MAX_BATCH_SIZE, Math.max(1, Math.floor(Number(query.get('batch_size'))) || 1)),
  };
}

/** How many of them fit into one response; at least one. */
function countThatFit(taken: readonly TakenJob[]): number {
  let [count, length] = [0, 0];
  for (const { request } of taken) {
    length += request.length;
    if (length > MAX_BATCH_CHARS && count > 0) break;
    count += 1;
  }
  return count;
}

/** Throws if the segment is not valid percent-encoded text. */
export function decodePathSegment(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new BerthError('malformed', 'the address is not a valid URL path');
  }
}

/** The job as its handler sees it: the request with the id in it. */
export function takenJobJson({ job, request }: TakenJob): string {
  return withMember(request, 'id', `"${job.id}"`);
}
