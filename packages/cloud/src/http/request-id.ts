import { randomUUID } from 'node:crypto';

export const REQUEST_ID_HEADER = 'X-Request-Id';

const ids = new WeakMap<object, string>();

/** The id of a request that does not pass through the web framework, the same however often it is asked for. */
export function requestIdOf(request: object): string {
  let id = ids.get(request);
  if (id === undefined) ids.set(request, (id = randomUUID()));
  return id;
}
