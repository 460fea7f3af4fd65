import type { Ids } from '../../support/ids.ts';

/** What stands behind /v2/ besides endpoint ids. */
export const RESERVED_ENDPOINT_IDS: ReadonlySet<string> = new Set([
  'account',
  'accounts',
  'audit',
  'system',
  'pods',
  'clusters',
  'serverless',
  'templates',
  'backup',
  'network-volumes',
  'registries',
  'catalog',
  'billing',
  'session',
  'sessions',
  'events',
  'images',
  'flash',
  'openapi.json',
  'docs',
  'user',
  'v2',
]);

/** An id that can stand in an address of the job API. */
export function newEndpointId(ids: Ids): string {
  for (;;) {
    const id = ids.resource();
    if (!RESERVED_ENDPOINT_IDS.has(id)) return id;
  }
}
