import { createHash, randomBytes } from 'node:crypto';
import type { CloudEventBus, CloudEvents } from '../../domain/events.ts';
import { seqFromJobId } from '../../domain/job-ids.ts';
import type { Job } from '../../domain/job-records.ts';
import { hasEnded } from '../../domain/job-status.ts';
import { formatTraceparent, parseTraceparent } from '../../domain/tracing.ts';
import type { JobTracing, SpanEnd, TraceContext } from '../../domain/tracing.ts';
import type { JobStore } from '../../store/job-store.ts';
import type { Clock } from '../../support/clock.ts';
import { memberText, withMember } from '../../support/json-text.ts';
import type { FinishedSpan } from './otlp-json.ts';

/** The member of a request that carries the context, in the store and to workers. */
const MEMBER = 'traceparent';
/** Contexts of jobs that are kept in memory; those of others are read from the store. */
const MAX_REMEMBERED = 10_000;

export interface JobTracesDeps {
  store: Pick<JobStore, 'find'>;
  clock: Clock;
  /** How many of the traces that begin here are recorded, from 0 to 1. */
  ratio: number;
  record(span: FinishedSpan): void;
  onError(error: unknown): void;
}

type StoredContext = Pick<TraceContext, 'traceId' | 'spanId' | 'sampled'>;
/** With the last attempt, which a job that went back to the queue does not have any more. */
type RememberedJob = StoredContext & { takenAt?: number; workerId?: string | null };

/**
 * The spans of a job: `job submit`, then below it `job wait` (in the queue), `job dispatch` (until the lease
 * is stored), `job run` (on the worker) and `webhook`. The context of the submission is a member of the
 * stored request, so the trace continues after a crash and on other servers. The id of `job run` follows from
 * job and attempt: the worker gets it before the span has ended, and any server can end it.
 */
export class JobTraces implements JobTracing {
  readonly #deps: JobTracesDeps;
  readonly #remembered = new Map<string, RememberedJob>();

  constructor(deps: JobTracesDeps) {
    this.#deps = deps;
  }

  subscribe(events: CloudEventBus): void {
    events.subscribe('job.changed', (change) => {
      if (change.from === 'IN_PROGRESS') this.#endRun(change).catch(this.#deps.onError);
    });
  }

  begin(traceparent: string | undefined): TraceContext {
    const parent = parseTraceparent(traceparent);
    return {
      traceId: parent?.traceId ?? randomBytes(16).toString('hex'),
      spanId: randomBytes(8).toString('hex'),
      parentSpanId: parent?.spanId,
      sampled: parent?.sampled ?? Math.random() < this.#deps.ratio,
      startedAt: this.#deps.clock.now(),
    };
  }

  end(span: TraceContext, end: SpanEnd): void {
    if (span.sampled) this.#deps.record({ ...span, ...end, endedAt: this.#deps.clock.now() });
  }

  annotate(request: string, span: TraceContext): string {
    return withMember(request, MEMBER, JSON.stringify(formatTraceparent(span)));
  }

  taken(job: Job, request: string): string {
    const context = contextIn(request);
    if (context === undefined) return request;
    const takenAt = job.takenAt ?? this.#deps.clock.now();
    this.#remember(job.id, { ...context, takenAt, workerId: job.workerId });
    const record = (name: string, startedAt: number, endedAt: number): void =>
      this.#record(job, context, { name, startedAt, endedAt, spanId: randomBytes(8).toString('hex') });
    record('job wait', job.queuedAt, takenAt);
    record('job dispatch', takenAt, this.#deps.clock.now());
    const traceparent = formatTraceparent({ ...context, spanId: runSpanId(job) });
    return withMember(request, MEMBER, JSON.stringify(traceparent));
  }

  async beginDelivery(endpointId: string, jobId: string): Promise<TraceContext | undefined> {
    const seq = seqFromJobId(jobId);
    const context = seq === undefined ? undefined : await this.#contextOf({ endpointId, id: jobId, seq });
    if (context === undefined) return undefined;
    return {
      traceId: context.traceId,
      sampled: context.sampled,
      parentSpanId: context.spanId,
      spanId: randomBytes(8).toString('hex'),
      startedAt: this.#deps.clock.now(),
    };
  }

  /** Its worker returned a result, or was lost, or the job was cancelled or ran out of time. */
  async #endRun({ job, leaseLost }: CloudEvents['job.changed']): Promise<void> {
    const isReturned = job.status === 'IN_QUEUE' && leaseLost !== true;
    if (isReturned) return;
    const context = await this.#contextOf(job);
    if (context === undefined) return;
    const error =
      leaseLost === true
        ? 'the worker was lost'
        : job.status === 'FAILED' || job.status === 'TIMED_OUT'
          ? job.status
          : undefined;
    const endedAt = job.endedAt ?? this.#deps.clock.now();
    this.#record({ ...job, workerId: job.workerId ?? context.workerId ?? null }, context, {
      name: 'job run',
      spanId: runSpanId(job),
      startedAt: job.takenAt ?? context.takenAt ?? endedAt,
      endedAt,
      error,
      status: hasEnded(job) ? job.status : 'LOST',
    });
  }

  async #contextOf({
    endpointId,
    id,
    seq,
  }: Pick<Job, 'endpointId' | 'id' | 'seq'>): Promise<RememberedJob | undefined> {
    const known = this.#remembered.get(id);
    if (known !== undefined) return known;
    const found = await this.#deps.store.find(endpointId, seq);
    return found === undefined || found.job.id !== id ? undefined : contextIn(found.payloads.request);
  }

  #remember(jobId: string, context: RememberedJob): void {
    this.#remembered.set(jobId, context);
    if (this.#remembered.size <= MAX_REMEMBERED) return;
    const [oldest] = this.#remembered.keys();
    this.#remembered.delete(oldest as string);
  }

  #record(
    { id, endpointId, workerId, attempt }: Job,
    { traceId, spanId: parentSpanId, sampled }: StoredContext,
    span: Pick<FinishedSpan, 'name' | 'spanId' | 'startedAt' | 'endedAt'> & {
      error?: string | undefined;
      status?: string;
    },
  ): void {
    if (!sampled) return;
    const { name, spanId, startedAt, endedAt, error, status } = span;
    this.#deps.record({
      traceId,
      spanId,
      parentSpanId,
      sampled,
      name,
      kind: name === 'job run' ? 'consumer' : 'internal',
      startedAt,
      endedAt,
      error,
      attributes: {
        'berth.endpoint_id': endpointId,
        'berth.job_id': id,
        'berth.attempt': attempt,
        ...(workerId !== null && { 'berth.worker_id': workerId }),
        ...(status !== undefined && { 'berth.job_status': status }),
      },
    });
  }
}

function contextIn(request: string): StoredContext | undefined {
  if (!request.includes(MEMBER)) return undefined;
  const text = memberText(request, MEMBER);
  const value: unknown = text === undefined ? undefined : JSON.parse(text);
  return typeof value === 'string' ? parseTraceparent(value) : undefined;
}

function runSpanId({ id, attempt }: Pick<Job, 'id' | 'attempt'>): string {
  return createHash('sha256').update(`${id} ${attempt}`).digest('hex').slice(0, 16);
}
