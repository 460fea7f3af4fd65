import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import { ProcessEngine } from '../../engines/process/process-engine.ts';
import type { Caller } from '../../domain/caller.ts';
import { defineDataCenter } from '../../domain/catalog/data-centers.ts';
import type { EndpointInput, EndpointSettings } from '../../domain/endpoints/endpoint-defaults.ts';
import { BerthError } from '../../support/errors.ts';
import { Catalog } from '../catalog/catalog.ts';
import { Registries } from '../registries/registries.ts';
import { Templates } from '../templates/templates.ts';
import { Volumes } from '../volumes/volumes.ts';
import { EndpointCache } from './endpoint-cache.ts';
import { Endpoints } from './endpoints.ts';
import type { EndpointsDeps } from './endpoints.ts';

export const refusedAs = (code: string, words: RegExp) => (error: unknown) =>
  error instanceof BerthError &&
  error.code === code &&
  words.test([error.message, ...error.details].join('\n'));

export const order = (
  settings: Partial<EndpointSettings> = {},
  references: Omit<EndpointInput, 'settings'> = {},
): EndpointInput => ({ ...references, settings: () => settings });

export const plain: Partial<EndpointSettings> = { name: 'plain', image: 'python:3.12', compute: 'CPU' };

export interface EndpointsFixture {
  context: ServiceContext;
  endpoints: Endpoints;
  deps: EndpointsDeps;
  templates: Templates;
  volumes: Volumes;
  registries: Registries;
  directory: EndpointCache;
  ann: Caller;
  bob: Caller;
  /** The endpoints that were removed. */
  removed: string[];
}

/** The service of endpoints, with what it works on, for two accounts. */
export async function createEndpointsFixture(): Promise<EndpointsFixture> {
  const context = await createServiceContext();
  const catalog = new Catalog({
    dataCenters: [defineDataCenter({ id: 'LOCAL-1' }), defineDataCenter({ id: 'EU-RO-1' })],
    engines: new Map([['process', new ProcessEngine({ virtualGpus: [] })]]),
    prices: { gpu: {}, cpu: {} },
  });
  const directory = new EndpointCache(context.store.endpoints, context.clock);
  const templates = new Templates(context);
  context.events.subscribe('endpoint.changed', ({ endpointId }) => directory.invalidate(endpointId));
  const volumes = new Volumes(context, catalog);
  const removed: string[] = [];
  const deps: EndpointsDeps = {
    catalog,
    templates,
    cache: directory,
    onRemoved: async (id) => {
      removed.push(id);
    },
  };
  return {
    context,
    endpoints: new Endpoints(context, deps),
    deps,
    templates,
    volumes,
    registries: new Registries(context),
    directory,
    ann: await context.account('ann'),
    bob: await context.account('bob'),
    removed,
  };
}
