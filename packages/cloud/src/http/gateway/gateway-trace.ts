import { formatTraceparent } from '../../domain/tracing.ts';
import type { Tracing } from '../../domain/tracing.ts';
import { rememberTrace } from '../request-id.ts';
import type { Request, Response } from '../raw-http.ts';

/**
 * The span of a request that is forwarded, where requests are traced. Returns the context for the worker or
 * pod; without tracing undefined, and what the client sent is forwarded as it is.
 */
export function traceForwarded(
  tracing: Tracing | undefined,
  request: Request,
  response: Response | undefined,
  attributes: Record<string, string>,
): string | undefined {
  if (tracing === undefined) return undefined;
  const { traceparent } = request.headers;
  const trace = tracing.begin(typeof traceparent === 'string' ? traceparent : undefined);
  rememberTrace(request, trace.traceId);
  response?.on('close', () =>
    tracing.end(trace, {
      name: 'gateway request',
      kind: 'server',
      attributes: {
        ...attributes,
        'http.request.method': request.method ?? '',
        'http.response.status_code': response.statusCode,
      },
      error: response.statusCode >= 500 ? `status ${response.statusCode}` : undefined,
    }),
  );
  return formatTraceparent(trace);
}
