import { memoryInGbOf } from '../../domain/catalog/cpu-selection.ts';
import { isAnyGpu, poolView } from '../../domain/catalog/gpu-selection.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import type { Endpoint } from '../../domain/records.ts';
import { isoTime } from '../../support/clock.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { list, named, object } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import type { EndpointUrls } from '../endpoint-urls.ts';
import { byId } from './common.v2.schema.ts';
import { serializeContainer } from './container.v2.schema.ts';
import { updateEndpointInput, createEndpointInput } from './endpoints.v2.input.ts';
import { createEndpoint, endpoint, updateEndpoint } from './endpoints.v2.schema.ts';
import { paginate, pageQuery, pagination } from './pagination.v2.ts';

type EndpointResponse = Static<typeof endpoint>;

export function endpointOperations(
  { endpoints, catalog }: ResourceServices,
  urls: EndpointUrls,
): Operation[] {
  const tag = 'Serverless';
  const allPools = catalog.pools().map(({ id }) => id);
  const show = (found: Endpoint): EndpointResponse =>
    serializeEndpoint(found, endpoints.isAccelerated(found), urls, allPools);
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
      response: named('EndpointList', object({ endpoints: list(endpoint), pagination })),
      errorStatuses: [422],
      handle: async ({ caller, query }) => {
        const page = await paginate('endpoints', query, (slice) => endpoints.list(caller, slice));
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
        'It takes requests at once. Workers start when there is something to do, or before, if ' +
        'workers.min asks for it. From a template, name, type and scaling have defaults: its name, ' +
        'QUEUE, and 4 seconds of waiting.',
      body: createEndpoint,
      status: 201,
      response: endpoint,
      errorStatuses: [400, 404, 413, 422],
      handle: async ({ caller, body }) => show(await endpoints.create(caller, createEndpointInput(body))),
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
      response: endpoint,
      errorStatuses: [404],
      handle: async ({ caller, params }) => show(await endpoints.get(caller, params.id)),
    }),
    operation({
      id: 'updateEndpoint',
      method: 'PATCH',
      path: '/serverless/{id}',
      tag,
      summary: 'Update an endpoint',
      access: 'write',
      description:
        'Only what is sent changes. Workers, scaling and times take effect at once; what is built into ' +
        'a container makes a new release.',
      params: byId,
      body: updateEndpoint,
      status: 200,
      response: endpoint,
      errorStatuses: [400, 404, 413, 422],
      handle: async ({ caller, params, body }) =>
        show(await endpoints.update(caller, params.id, updateEndpointInput(body))),
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
      errorStatuses: [400, 404],
      handle: ({ caller, params }) => endpoints.remove(caller, params.id),
    }),
  ];
}

function serializeEndpoint(
  found: Endpoint,
  accelerate: boolean,
  urls: EndpointUrls,
  allPools: string[],
): EndpointResponse {
  // Of no use there, and so neither taken nor shown.
  const hasIdleTimeout = found.type !== 'QUEUE' || found.scalerType !== 'REQUEST_COUNT';
  return {
    id: found.id,
    name: found.name,
    type: found.type,
    requestUrls: urls.of(found),
    ...serializeContainer(found),
    gpu: found.compute === 'GPU' ? serializeGpu(found, allPools) : null,
    ...(found.compute === 'CPU' && {
      cpu: found.cpuFlavors.map((choice) => ({ ...choice, memory: memoryInGbOf(choice) })),
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
    accelerate,
    jobTtl: found.jobTtl,
    retention: found.retention,
    maxRetries: found.maxRetries,
    createdAt: isoTime(found.createdAt),
  };
}

function serializeGpu(found: Endpoint, allPools: string[]): NonNullable<EndpointResponse['gpu']> {
  const { pools, unpooledTypes, excludedTypes } = poolView(found);
  return {
    pools: isAnyGpu(found) ? allPools : [...pools, ...unpooledTypes],
    excludedTypes,
    count: found.gpuCount,
    allowedCudaVersions: found.allowedCudaVersions,
    minCudaVersion: found.minCudaVersion,
  };
}
