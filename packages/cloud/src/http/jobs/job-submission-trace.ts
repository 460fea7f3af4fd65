import type { Tracing } from '../../domain/tracing.ts';
import type { SubmitRequest } from '../../queue/job-submitter.ts';
import { rememberTrace } from '../request-id.ts';
import type { BasicRequest } from '../raw-http.ts';

/**
 * Submits, within a span of its own where requests are traced: it continues with the trace of the caller and
 * lasts as long as the caller waits.
 */
export function traceSubmission<T>(
  tracing: Tracing | undefined,
  { request }: { request: BasicRequest },
  submitted: SubmitRequest,
  submit: (submitted: SubmitRequest) => Promise<T>,
): Promise<T> {
  if (tracing === undefined) return submit(submitted);
  const { traceparent } = request.headers;
  const trace = tracing.begin(typeof traceparent === 'string' ? traceparent : undefined);
  rememberTrace(request, trace.traceId);
  const end = (error?: unknown): void =>
    tracing.end(trace, {
      name: 'job submit',
      kind: 'server',
      attributes: { 'berth.endpoint_id': submitted.endpoint.id },
      ...(error !== undefined && { error: error instanceof Error ? error.message : String(error) }),
    });
  return submit({ ...submitted, trace }).then(
    (result) => {
      end();
      return result;
    },
    (error: unknown) => {
      end(error);
      throw error;
    },
  );
}
