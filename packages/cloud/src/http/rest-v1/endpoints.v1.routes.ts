import { isDeepStrictEqual } from 'node:util';
import type { Caller } from '../../domain/caller.ts';
import { anyCpuFlavor, DEFAULT_VCPU_COUNT } from '../../domain/catalog/cpu-selection.ts';
import { eligibleAmong, eligibleGpuTypes } from '../../domain/catalog/gpu-selection.ts';
import { exactScalerValue } from '../../domain/endpoints/scaler-value.ts';
import type { AllServices, ResourceServices } from '../../resources/resources.ts';
import { type CpuChoice, type Endpoint, type FlashBoot } from '../../domain/records.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { boolean, integer, list, named, nullable, object, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { serializeEndpoint, serializeWorker } from './endpoints.v1.json.ts';
import { computeType, endpoint, scalerType, type worker } from './endpoints.v1.schema.ts';
import { serializeTemplate } from './templates.v1.routes.ts';
import type { EndpointInput, EndpointSettings } from '../../domain/endpoints/endpoint-defaults.ts';
import {
  MAX_NAME_LENGTH,
  IDLE_TIMEOUT,
  GPU_COUNT,
  MIN_VCPU_COUNT,
  REQUEST_COUNT,
  WORKER_COUNT,
} from '../../domain/limits.ts';

const changeable = {
  name: text({ minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'Need not be unique' }),
  gpuTypeIds: list(text({ minLength: 1 }), {
    description: 'GPU types, the most wanted first; the first that is free is used. Empty or left out: any',
  }),
  gpuCount: integer({ minimum: GPU_COUNT.minimum, description: 'GPUs of each worker' }),
  cpuFlavorIds: list(text({ minLength: 1 }), { description: 'CPU flavours, the most wanted first' }),
  vcpuCount: integer({ minimum: MIN_VCPU_COUNT, description: 'vCPUs of each worker, a power of two' }),
  dataCenterIds: list(text({ minLength: 1 }), { description: 'Empty or left out: anywhere' }),
  allowedCudaVersions: list(text(), { description: 'Such as 12.8' }),
  minCudaVersion: nullable(text({ description: 'Such as 12.8; null or empty is any' })),
  networkVolumeId: nullable(text({ description: 'Null or empty is none' })),
  networkVolumeIds: list(text({ minLength: 1 }), { description: 'At most one in each data center' }),
  executionTimeoutMs: integer({ minimum: 0, description: '0 is no limit' }),
  flashboot: boolean(),
  idleTimeout: integer({ ...IDLE_TIMEOUT, description: 'Seconds' }),
  scalerType,
  scalerValue: integer({
    minimum: REQUEST_COUNT.minimum,
    description: 'Seconds of waiting, or requests for each worker',
  }),
  workersMin: integer({ minimum: WORKER_COUNT.minimum }),
  workersMax: integer({ minimum: WORKER_COUNT.minimum }),
};
const templateId = text({
  minLength: 1,
  description: 'A change of a template of yours reaches the endpoints made from it',
});
const createInput = named('EndpointCreateInput', object({ templateId }, { computeType, ...changeable }));
const updateInput = named('EndpointUpdateInput', object({}, { templateId, ...changeable }));
type Body = Static<typeof updateInput>;

const include = {
  includeTemplate: boolean({ default: false, description: 'Also the template' }),
  includeWorkers: boolean({ default: false, description: 'Also the workers' }),
};
const byEndpointId = object({ endpointId: text({ minLength: 1 }) });

/** Where nothing runs workers, there are none to show. */
export function endpointOperations({
  endpoints,
  workers,
  catalog,
}: ResourceServices & Partial<Pick<AllServices, 'workers'>>): Operation[] {
  const tag = 'Endpoints';
  const workersOf = (found: Endpoint): Promise<Static<typeof worker>[]> =>
    Promise.all(
      (workers?.viewsOf(found) ?? []).map(async (view) => {
        const { dataCenterId, gpuTypeId } = view.worker;
        const isVirtual = gpuTypeId !== null && (await catalog.isVirtualGpu(dataCenterId, gpuTypeId));
        return serializeWorker(view, found, isVirtual);
      }),
    );
  const show = async (found: Endpoint): Promise<Static<typeof endpoint>> => {
    const virtual = found.compute === 'GPU' ? eligibleAmong(found, await catalog.virtualGpuTypes()) : [];
    return { ...serializeEndpoint(found), ...(virtual.length > 0 && { virtualGpuTypeIds: virtual }) };
  };
  const shown = async (
    caller: Caller,
    found: Endpoint,
    { includeTemplate, includeWorkers }: { includeTemplate?: boolean; includeWorkers?: boolean },
  ): Promise<Static<typeof endpoint>> => ({
    ...(await show(found)),
    ...(includeTemplate === true && {
      template: serializeTemplate(await endpoints.templateOf(caller, found)),
    }),
    ...(includeWorkers === true && { workers: await workersOf(found) }),
  });
  const update = {
    tag,
    access: 'write' as const,
    params: byEndpointId,
    body: updateInput,
    status: 200 as const,
    response: endpoint,
    errorStatuses: [400, 404],
    handle: async ({
      caller,
      params,
      body,
    }: {
      caller: Caller;
      params: { endpointId: string };
      body: Body;
    }) => show(await endpoints.update(caller, params.endpointId, endpointInput(body))),
  };
  return [
    operation({
      id: 'createEndpoint',
      method: 'POST',
      path: '/endpoints',
      tag,
      summary: 'Create a serverless endpoint',
      access: 'write',
      body: createInput,
      status: 200,
      response: endpoint,
      errorStatuses: [400],
      handle: async ({ caller, body: { computeType: compute = 'GPU', ...body } }) => {
        const order = endpointInput(body);
        return show(
          await endpoints.create(caller, {
            ...order,
            settings: (base) => ({ compute, ...order.settings(base) }),
          }),
        );
      },
    }),
    operation({
      id: 'listEndpoints',
      method: 'GET',
      path: '/endpoints',
      tag,
      summary: 'List your serverless endpoints',
      access: 'read',
      query: object({}, include),
      status: 200,
      response: list(endpoint),
      errorStatuses: [400],
      handle: async ({ caller, query }) =>
        Promise.all((await endpoints.list(caller)).map((found) => shown(caller, found, query))),
    }),
    operation({
      id: 'getEndpoint',
      method: 'GET',
      path: '/endpoints/{endpointId}',
      tag,
      summary: 'Get a serverless endpoint',
      access: 'read',
      params: byEndpointId,
      query: object({}, include),
      status: 200,
      response: endpoint,
      errorStatuses: [400, 404],
      handle: async ({ caller, params, query }) =>
        shown(caller, await endpoints.get(caller, params.endpointId), query),
    }),
    operation({
      ...update,
      id: 'updateEndpoint',
      method: 'PATCH',
      path: '/endpoints/{endpointId}',
      summary: 'Update a serverless endpoint',
    }),
    operation({
      ...update,
      id: 'updateEndpointByPost',
      method: 'POST',
      path: '/endpoints/{endpointId}/update',
      summary: 'Update a serverless endpoint (the same as PATCH)',
    }),
    operation({
      id: 'deleteEndpoint',
      method: 'DELETE',
      path: '/endpoints/{endpointId}',
      tag,
      summary: 'Delete a serverless endpoint with its jobs',
      access: 'write',
      params: byEndpointId,
      status: 204,
      errorStatuses: [400, 404],
      handle: ({ caller, params }) => endpoints.remove(caller, params.endpointId),
    }),
  ];
}

function endpointInput(body: Body): EndpointInput {
  const { templateId: id, networkVolumeId, networkVolumeIds } = body;
  const volumes = networkVolumeId !== undefined || networkVolumeIds !== undefined;
  return {
    ...(id !== undefined && { template: { as: 'link', id } }),
    ...(volumes && {
      networkVolumeIds: [...(networkVolumeId ? [networkVolumeId] : []), ...(networkVolumeIds ?? [])],
    }),
    settings: (base) => settingsOf(body, base),
  };
}

/**
 * Only the fields of the body. One that is sent back as it was shown changes nothing: some fields show less
 * than is stored.
 */
function settingsOf(body: Body, base: Endpoint): Partial<EndpointSettings> {
  const {
    name,
    gpuTypeIds,
    gpuCount,
    dataCenterIds,
    allowedCudaVersions,
    minCudaVersion,
    executionTimeoutMs,
    flashboot,
    idleTimeout,
    scalerValue,
    workersMin,
    workersMax,
  } = body;
  const cpuFlavors = cpuFlavorsOf(body, base.cpuFlavors);
  return {
    ...(name !== undefined && { name }),
    ...(gpuTypeIds !== undefined &&
      !isDeepStrictEqual(gpuTypeIds, eligibleGpuTypes(base)) && {
        gpuTypeIds,
        gpuPools: [],
        excludedGpuTypes: [],
      }),
    ...(gpuCount !== undefined && { gpuCount }),
    ...(cpuFlavors !== undefined && { cpuFlavors }),
    ...(dataCenterIds !== undefined &&
      !isDeepStrictEqual(dataCenterIds, base.dataCenterIds) && { dataCenterIds, locations: '' }),
    ...(allowedCudaVersions !== undefined && { allowedCudaVersions }),
    ...(minCudaVersion !== undefined && { minCudaVersion: minCudaVersion || null }),
    ...(executionTimeoutMs !== undefined && { executionTimeout: executionTimeoutMs }),
    ...(flashboot !== undefined && { flashboot: flashBootOf(flashboot, base.flashboot) }),
    ...(idleTimeout !== undefined && { idleTimeout }),
    ...(body.scalerType !== undefined && { scalerType: body.scalerType }),
    ...(scalerValue !== undefined && { scalerValue: exactScalerValue(scalerValue, base, body.scalerType) }),
    ...(workersMin !== undefined && { workersMin }),
    ...(workersMax !== undefined && { workersMax }),
  };
}

/** Flavours and vCPUs are separate fields here; each may be given alone. */
function cpuFlavorsOf(
  { cpuFlavorIds, vcpuCount }: Body,
  present: readonly CpuChoice[],
): CpuChoice[] | undefined {
  if (cpuFlavorIds === undefined && vcpuCount === undefined) return undefined;
  const count = vcpuCount ?? present[0]?.vcpuCount ?? DEFAULT_VCPU_COUNT;
  const ids = cpuFlavorIds ?? (present.length > 0 ? present : anyCpuFlavor()).map(({ id }) => id);
  return [...new Set(ids)].map((id) => ({ id, vcpuCount: count }));
}

/** A boolean does not say which kind of FlashBoot. */
function flashBootOf(on: boolean, present: FlashBoot): FlashBoot {
  if (!on) return 'OFF';
  return present === 'OFF' ? 'FLASHBOOT' : present;
}
