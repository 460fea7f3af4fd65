import type { SpanEnd, SpanKind, TraceContext } from '../../domain/tracing.ts';

/** A span that is over. */
export interface FinishedSpan extends TraceContext, SpanEnd {
  endedAt: number;
}

/** As numbered by OTLP. */
const KINDS: Record<SpanKind, number> = { internal: 1, server: 2, client: 3, consumer: 5 };
const STATUS_ERROR = 2;
const MAX_ERROR_LENGTH = 1_000;

export type Attributes = Readonly<Record<string, string | number>>;

/** The body of an export request: OTLP in JSON, where ids are hexadecimal and 64-bit integers are text. */
export function exportRequestJson(spans: readonly FinishedSpan[], resource: Attributes): string {
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: keyValues(resource) },
        scopeSpans: [{ scope: { name: 'berth' }, spans: spans.map(toOtlp) }],
      },
    ],
  });
}

function toOtlp({
  traceId,
  spanId,
  parentSpanId,
  name,
  kind,
  startedAt,
  endedAt,
  attributes,
  error,
}: FinishedSpan): object {
  return {
    traceId,
    spanId,
    ...(parentSpanId !== undefined && { parentSpanId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanoseconds(startedAt),
    endTimeUnixNano: nanoseconds(Math.max(startedAt, endedAt)),
    attributes: keyValues(attributes),
    status: error === undefined ? {} : { code: STATUS_ERROR, message: error.slice(0, MAX_ERROR_LENGTH) },
  };
}

function keyValues(attributes: Attributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value:
      typeof value === 'string'
        ? { stringValue: value }
        : Number.isInteger(value)
          ? { intValue: String(value) }
          : { doubleValue: value },
  }));
}

function nanoseconds(milliseconds: number): string {
  return String(BigInt(Math.round(milliseconds * 1_000)) * 1_000n);
}
