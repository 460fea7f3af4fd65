import { randomUUID } from 'node:crypto';

export const REQUEST_ID_HEADER = 'X-Request-Id';

const ids = new WeakMap<object, string>();

/** The id of a request that does not pass through the web framework: the same whenever it is asked for. */
export function requestIdOf(request: object): string {
  let id = ids.get(request);
  if (id === undefined) ids.set(request, (id = randomUUID()));
  return id;
}

const traceIds = new WeakMap<object, string>();

/** The log names the trace of a request, where it has one. */
export function rememberTrace(request: object, traceId: string): void {
  traceIds.set(request, traceId);
}

export function traceIdOf(request: object): string | undefined {
  return traceIds.get(request);
}
