import { memoryOf } from '../../resources/endpoints/cpu-selection.ts';
import { isAnyGpu, poolView } from '../../resources/endpoints/gpu-selection.ts';
import type { Resources } from '../../resources/resources.ts';
import type { Endpoint } from '../../store/records.ts';
import { isoTime } from '../../support/clock.ts';
import type { Operation } from '../rest/operation.ts';
import { operation } from '../rest/operation.ts';
import { list, named, object } from '../rest/schema.ts';
import type { Static } from '../rest/schema.ts';
import type { Urls } from '../urls.ts';
import { byId } from './common.ts';
import { showContainer } from './container.ts';
import { orderOfChange, orderOfCreation } from './endpoint-body.ts';
import { createEndpoint, endpoint, updateEndpoint } from './endpoint-schema.ts';
import { paged, pageQuery, pagination } from './pagination.ts';

type Shown = Static<typeof endpoint>;

export function endpointOperations({ endpoints, catalog }: Resources, urls: Urls): Operation[] {
  const tag = 'Serverless';
  const allPools = catalog.pools().map(({ id }) => id);
  const show = (found: Endpoint): Shown => showEndpoint(found, urls, allPools);
  return [
    operation({
      id: 'listEndpoints',
      method: 'GET',
      path: '/serverless',
      tag,
      summary: 'List your endpoints, newest first',
      access: 'read',
      query: object({}, pageQuery),
      status: 200,
      answer: named('EndpointList', object({ endpoints: list(endpoint), pagination })),
      failures: [422],
      handle: async ({ caller, query }) => {
        const page = await paged('endpoints', query, (stretch) => endpoints.list(caller, stretch));
        return { endpoints: page.items.map(show), pagination: page.pagination };
      },
    }),
    operation({
      id: 'createEndpoint',
      method: 'POST',
      path: '/serverless',
      tag,
      summary: 'Create an endpoint',
      access: 'write',
      description:
        'It takes requests at once. Workers start when there is something to do, or before, if workers.min asks for it. From a template, name, type and scaling have defaults: its name, QUEUE, and 4 seconds of waiting.',
      body: createEndpoint,
      status: 201,
      answer: endpoint,
      failures: [400, 404, 413, 422],
      handle: async ({ caller, body }) => show(await endpoints.create(caller, orderOfCreation(body))),
    }),
    operation({
      id: 'getEndpoint',
      method: 'GET',
      path: '/serverless/{id}',
      tag,
      summary: 'Get an endpoint',
      access: 'read',
      params: byId,
      status: 200,
      answer: endpoint,
      failures: [404],
      handle: async ({ caller, params }) => show(await endpoints.get(caller, params.id)),
    }),
    operation({
      id: 'updateEndpoint',
      method: 'PATCH',
      path: '/serverless/{id}',
      tag,
      summary: 'Change an endpoint',
      access: 'write',
      description:
        'Only what is sent changes. Workers, scaling and times take effect at once; what is built into a container makes a new release.',
      params: byId,
      body: updateEndpoint,
      status: 200,
      answer: endpoint,
      failures: [400, 404, 413, 422],
      handle: async ({ caller, params, body }) =>
        show(await endpoints.update(caller, params.id, orderOfChange(body))),
    }),
    operation({
      id: 'deleteEndpoint',
      method: 'DELETE',
      path: '/serverless/{id}',
      tag,
      summary: 'Delete an endpoint with its workers and jobs',
      access: 'write',
      params: byId,
      status: 204,
      failures: [400, 404],
      handle: ({ caller, params }) => endpoints.remove(caller, params.id),
    }),
  ];
}

function showEndpoint(found: Endpoint, urls: Urls, allPools: string[]): Shown {
  // Of no use there, and so neither taken nor shown.
  const hasIdleTimeout = found.type !== 'QUEUE' || found.scalerType !== 'REQUEST_COUNT';
  return {
    id: found.id,
    name: found.name,
    type: found.type,
    requestUrls: urls.endpoint(found),
    ...showContainer(found),
    gpu: found.compute === 'GPU' ? showGpu(found, allPools) : null,
    ...(found.compute === 'CPU' && {
      cpu: found.cpuFlavors.map((choice) => ({ ...choice, memory: memoryOf(choice) })),
    }),
    workers: {
      min: found.workersMin,
      max: found.workersMax,
      ...(hasIdleTimeout && { idleTimeout: found.idleTimeout }),
    },
    scaling:
      found.scalerType === 'QUEUE_DELAY'
        ? { type: 'QUEUE_DELAY', queueDelay: found.scalerValue }
        : { type: 'REQUEST_COUNT', requestCount: found.scalerValue },
    dataCenterIds: found.dataCenterIds,
    networkVolumes: found.networkVolumeIds,
    timeout: found.executionTimeout,
    flashboot: found.flashboot,
    jobTtl: found.jobTtl,
    retention: found.retention,
    maxRetries: found.maxRetries,
    createdAt: isoTime(found.createdAt),
  };
}

function showGpu(found: Endpoint, allPools: string[]): NonNullable<Shown['gpu']> {
  const { pools, loose, excludedTypes } = poolView(found);
  return {
    pools: isAnyGpu(found) ? allPools : [...pools, ...loose],
    excludedTypes,
    count: found.gpuCount,
    allowedCudaVersions: found.allowedCudaVersions,
    minCudaVersion: found.minCudaVersion,
  };
}
