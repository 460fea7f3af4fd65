import { parsePools } from '../../domain/catalog/gpu-selection.ts';
import type { Endpoint } from '../../domain/records.ts';
import { type BerthError, ruleError, schemaError } from '../../support/errors.ts';
import type { Static } from '../rest/json-schema.ts';
import { mergeCommand } from './container.v2.schema.ts';
import type { createEndpoint, updateEndpoint } from './endpoints.v2.schema.ts';
import {
  type EndpointInput,
  type EndpointSettings,
  ENDPOINT_DEFAULTS,
  V2_ENDPOINT_DEFAULTS,
} from '../../domain/endpoints/endpoint-defaults.ts';

/** What a body of REST v2 asks of an endpoint. */

type CreateBody = Static<typeof createEndpoint>;
type UpdateBody = Static<typeof updateEndpoint>;
type Gpu = NonNullable<UpdateBody['gpu']>;

export function createEndpointInput(body: CreateBody): EndpointInput {
  const { gpu, cpu, templateId, type = 'QUEUE' } = body;
  if (gpu !== undefined && cpu !== undefined)
    throw ruleError('gpu and cpu exclude each other; send exactly one of them');
  if (gpu === undefined && cpu === undefined && templateId === undefined)
    throw ruleError('send exactly one of gpu and cpu');
  if (type === 'LOAD_BALANCER' && body.scaling?.type === 'QUEUE_DELAY')
    throw invalid('$.scaling.type: must be REQUEST_COUNT for a LOAD_BALANCER endpoint, got "QUEUE_DELAY"');
  checkCuda(gpu ?? {});
  const scaler: Partial<EndpointSettings> =
    type === 'LOAD_BALANCER'
      ? { scalerType: 'REQUEST_COUNT', scalerValue: ENDPOINT_DEFAULTS.scalerValue }
      : {};
  return {
    ...referencesOf(body),
    settings: (base) => {
      const given = settingsOf(body, base);
      checkIdleTimeout(body, { ...base, ...scaler, ...given, type });
      return {
        ...V2_ENDPOINT_DEFAULTS,
        ...scaler,
        type,
        ...(cpu !== undefined && { compute: 'CPU' }),
        ...(gpu !== undefined && { compute: 'GPU' }),
        ...given,
        env: { ...base.env, ...body.env },
      };
    },
  };
}

export function updateEndpointInput(body: UpdateBody): EndpointInput {
  return {
    ...referencesOf(body),
    settings: (base) => {
      const wrong = base.compute === 'GPU' ? 'cpu' : 'gpu';
      if (body[wrong] !== undefined)
        throw ruleError(`this is a ${base.compute} endpoint, and that is fixed: it takes no ${wrong}`);
      checkCuda(body.gpu ?? {}, base);
      const given = settingsOf(body, base);
      checkIdleTimeout(body, { ...base, ...given });
      // The template's variables are in the base already; without a template, the map replaces the present
      // one.
      return {
        ...given,
        ...(body.env !== undefined && {
          env: body.templateId === undefined ? body.env : { ...base.env, ...body.env },
        }),
      };
    },
  };
}

function referencesOf({ templateId, registry, networkVolumes }: UpdateBody): Omit<EndpointInput, 'settings'> {
  return {
    ...(templateId !== undefined && { template: { as: 'copy', id: templateId } }),
    ...(registry !== undefined && { registryId: registry }),
    ...(networkVolumes !== undefined && { networkVolumeIds: networkVolumes }),
  };
}

/** Only the fields of the body, without the environment, which may build on the template's. */
function settingsOf(body: UpdateBody, base: Endpoint): Partial<EndpointSettings> {
  const {
    name,
    image,
    disk,
    ports,
    gpu,
    cpu,
    workers,
    scaling,
    dataCenterIds,
    flashboot,
    accelerate,
    timeout,
    jobTtl,
    retention,
    maxRetries,
  } = body;
  return {
    args: mergeCommand(body, base.args),
    ...(name !== undefined && { name }),
    ...(image !== undefined && { image }),
    ...(disk !== undefined && { containerDisk: disk }),
    ...(ports !== undefined && { ports }),
    ...(gpu !== undefined && gpuSettings(gpu)),
    ...(cpu !== undefined && { cpuFlavors: cpu }),
    ...(workers?.min !== undefined && { workersMin: workers.min }),
    ...(workers?.max !== undefined && { workersMax: workers.max }),
    ...(workers?.idleTimeout !== undefined && { idleTimeout: workers.idleTimeout }),
    ...(scaling !== undefined && {
      scalerType: scaling.type,
      scalerValue: scaling.type === 'QUEUE_DELAY' ? scaling.queueDelay : scaling.requestCount,
    }),
    ...(dataCenterIds !== undefined && { dataCenterIds, locations: '' }),
    ...(flashboot !== undefined && { flashboot }),
    ...(accelerate !== undefined && { accelerate }),
    ...(timeout !== undefined && { executionTimeout: timeout }),
    ...(jobTtl !== undefined && { jobTtl }),
    ...(retention !== undefined && { retention }),
    ...(maxRetries !== undefined && { maxRetries }),
  };
}

/** Pools and exclusions are one selection: pools alone are taken whole. */
function gpuSettings({
  pools,
  excludedTypes = [],
  count,
  allowedCudaVersions,
  minCudaVersion,
}: Gpu): Partial<EndpointSettings> {
  return {
    ...(pools !== undefined && { ...parsePools(pools), excludedGpuTypes: excludedTypes }),
    ...(count !== undefined && { gpuCount: count }),
    ...(allowedCudaVersions !== undefined && { allowedCudaVersions }),
    ...(minCudaVersion !== undefined && { minCudaVersion: minCudaVersion === '' ? null : minCudaVersion }),
  };
}

/**
 * A set of versions and a floor exclude each other. Other interfaces allow both, so it is asked only where a
 * body speaks of them.
 */
function checkCuda(
  { allowedCudaVersions, minCudaVersion }: Gpu,
  present: Pick<Endpoint, 'allowedCudaVersions' | 'minCudaVersion'> = {
    allowedCudaVersions: [],
    minCudaVersion: null,
  },
): void {
  if (allowedCudaVersions === undefined && minCudaVersion === undefined) return;
  const versions = allowedCudaVersions ?? present.allowedCudaVersions;
  const floor = minCudaVersion ?? present.minCudaVersion ?? '';
  if (versions.length > 0 && floor !== '')
    throw ruleError(
      'gpu.allowedCudaVersions and gpu.minCudaVersion exclude each other; send one of them, or clear ' +
        'the other with [] or ""',
    );
}

function checkIdleTimeout(
  { workers }: UpdateBody,
  { type, scalerType }: Pick<Endpoint, 'type' | 'scalerType'>,
): void {
  if (workers?.idleTimeout === undefined || type !== 'QUEUE' || scalerType !== 'REQUEST_COUNT') return;
  throw invalid('$.workers.idleTimeout: must not be given for a QUEUE endpoint that scales by REQUEST_COUNT');
}

function invalid(finding: string): BerthError {
  return schemaError([finding]);
}
