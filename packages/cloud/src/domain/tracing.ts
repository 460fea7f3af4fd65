import type { Job } from './job-records.ts';

/** One span that has begun, as W3C Trace Context names it. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  /** The span that caused it, perhaps in another program. */
  parentSpanId: string | undefined;
  /** Whether the trace is recorded. An unrecorded one is passed on all the same. */
  sampled: boolean;
  /** Milliseconds since 1970. */
  startedAt: number;
}

/** What is recorded of a span at its end. */
export interface SpanEnd {
  name: string;
  kind: SpanKind;
  attributes: Record<string, string | number>;
  /** Why it failed; undefined if it did not. */
  error?: string | undefined;
}

export type SpanKind = 'internal' | 'server' | 'client' | 'consumer';

/** Traces of requests. */
export interface Tracing {
  /** A span that continues with the caller's trace, or begins one. */
  begin(traceparent: string | undefined): TraceContext;
  end(span: TraceContext, end: SpanEnd): void;
}

/** Traces of jobs. The context of a job is stored with its request. */
export interface JobTracing extends Tracing {
  /** The text of a request, with the context in which the job was submitted. */
  annotate(request: string, span: TraceContext): string;
  /** A worker gets this job. Returns the request with the context for its handler. */
  taken(job: Job, request: string): string;
  /** The span of one attempt to deliver the webhook of a job; undefined if the job has no trace. */
  beginDelivery(endpointId: string, jobId: string): Promise<TraceContext | undefined>;
}

/** `version-traceid-parentid-flags`; a version that is not known may have more fields. */
const TRACEPARENT = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** Undefined if it is not a valid traceparent: then a new trace begins, as W3C says. */
export function parseTraceparent(
  text: string | undefined,
): { traceId: string; spanId: string; sampled: boolean } | undefined {
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(text?.trim() ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === '00' && more !== undefined) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function formatTraceparent({
  traceId,
  spanId,
  sampled,
}: Pick<TraceContext, 'traceId' | 'spanId' | 'sampled'>): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}
