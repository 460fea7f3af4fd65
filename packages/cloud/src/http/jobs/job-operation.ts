import type { FastifyBaseLogger } from 'fastify';
import type { Authenticator } from '../../auth/authenticator.ts';
import type { OpenAccesses } from '../../auth/open-access.ts';
import { seqFromJobId } from '../../domain/job-ids.ts';
import type { Job, JobOutcome, JobWithPayloads } from '../../domain/job-records.ts';
import type { StartPhases } from '../../domain/endpoints/start-phases.ts';
import type { LogLine } from '../../domain/log-line.ts';
import type { ApiKey, Endpoint } from '../../domain/records.ts';
import type { Tracing } from '../../domain/tracing.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import type { WebhookDeliveries } from '../../queue/webhooks/webhook-deliveries.ts';
import type { EndpointCache } from '../../resources/endpoints/endpoint-cache.ts';
import { BerthError } from '../../support/errors.ts';
import type { AnswerBudget } from '../answer-budget.ts';
import type { BasicRequest, BasicResponse } from '../raw-http.ts';
import type { JobRateLimits } from './job-rate-limits.ts';

/** Of requests that need no body. */
export const MAX_SMALL_BODY_BYTES = 1024 * 1024;

export interface JobRoutesDeps {
  queue: JobQueue;
  webhooks: WebhookDeliveries;
  endpoints: EndpointCache;
  authenticator: Authenticator;
  openAccesses: OpenAccesses;
  /** The memory of large answers; default: one of its own. */
  answerBudget?: AnswerBudget;
  rateLimits: JobRateLimits | undefined;
  /** If given, requests are traced. */
  tracing?: Tracing | undefined;
  log: FastifyBaseLogger;
  /** Why an endpoint has no workers, if that is known. */
  noWorkersReason(endpoint: Endpoint): string | undefined;
  /** The phases of the start that the job waited for, if it did. */
  startPhases?(job: Job): StartPhases | undefined | Promise<StartPhases | undefined>;
  /** What the worker of a job wrote while it ran the job. */
  jobLogs?(job: Job, signal: AbortSignal): AsyncIterable<LogLine>;
  /** Workers without a heartbeat yet, and workers that cannot start. */
  workerCounts?(
    endpoint: Endpoint,
  ): { initializing: number; throttled: number; unhealthy: number } | undefined;
}

/** An authorized request to a queue endpoint. */
export interface JobCall {
  request: BasicRequest;
  response: BasicResponse;
  endpoint: Endpoint;
  key: ApiKey;
  /** The path segments after the operation. */
  rest: string[];
  query: URLSearchParams;
}

export interface JobOperation {
  methods: readonly string[];
  /** How many path segments may follow the operation; default: 0. */
  segments?: number;
  mode: 'read' | 'write';
  /** Its answer may take long: it waits for the job, or may be large. */
  long?: boolean;
  handle(call: JobCall): Promise<void>;
}

export type JobOperations = Readonly<Record<string, JobOperation>>;

export function parseJobId([id = '']: string[]): { seq: number; id: string } {
  const seq = seqFromJobId(id);
  if (seq === undefined) throw missingJob(id);
  return { seq, id };
}

export async function findJob(
  queue: JobQueue,
  endpointId: string,
  seq: number,
  id: string,
): Promise<JobWithPayloads> {
  return requireJob(await queue.find(endpointId, seq), id);
}

/** Whether there is such a job, without what it carries. */
export async function checkJob(queue: JobQueue, endpointId: string, seq: number, id: string): Promise<Job> {
  const found = await queue.findOutline(endpointId, seq, 0);
  if (found === undefined || found.job.id !== id) throw missingJob(id);
  return found.job;
}

/** A job is found by the number inside its id, so the rest of the id has to be compared. */
export function requireJob<Found extends JobOutcome>(found: Found | undefined, id: string): Found {
  if (found === undefined || found.job.id !== id) throw missingJob(id);
  return found;
}

export function missingJob(id: string): BerthError {
  return new BerthError(
    'not-found',
    `job not found: ${JSON.stringify(id.slice(0, 64))} is unknown or its result has expired`,
  );
}

export function noSuchRoute(): BerthError {
  return new BerthError('no-route', 'no such address');
}

/** A whole number of any size; the caller clamps it. */
export function parseCount(query: URLSearchParams, name: string, fallback: number): number {
  const text = query.get(name);
  if (text === null) return fallback;
  if (!/^-?\d+$/.test(text)) throw new BerthError('rule', `${name} must be a whole number`);
  return Number(text);
}
