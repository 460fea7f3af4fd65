import type { DataCenterDefinition } from '../../domain/catalog/data-centers.ts';
import { parseCpuInstanceId } from '../../domain/catalog/cpu-selection.ts';
import { formatGpuIds, parseGpuIds } from '../../domain/catalog/gpu-selection.ts';
import { dataCentersInLocations, locationsOf } from '../../domain/endpoints/endpoint-locations.ts';
import { exactScalerValue } from '../../domain/endpoints/scaler-value.ts';
import {
  type ComputeType,
  type Endpoint,
  type EndpointType,
  type FlashBoot,
  type ScalerType,
  SCALER_TYPES,
} from '../../domain/records.ts';
import { ruleError } from '../../support/errors.ts';
import type { SaveTemplateInput } from './templates.resolvers.ts';
import { environmentFromList, templateFields } from './templates.resolvers.ts';
import type {
  EndpointInput,
  EndpointSettings,
  TemplateUse,
} from '../../domain/endpoints/endpoint-defaults.ts';

/** The input of saveEndpoint. */
export interface SaveEndpointInput {
  id?: string;
  name?: string;
  templateId?: string;
  template?: SaveTemplateInput;
  hubReleaseId?: string;
  gpuIds?: string;
  gpuCount?: number;
  instanceIds?: string[];
  type?: 'QB' | 'LB';
  computeType?: ComputeType;
  allowedCudaVersions?: string;
  minCudaVersion?: string;
  locations?: string;
  compliance?: string[];
  networkVolumeId?: string;
  networkVolumeIds?: { networkVolumeId?: string }[];
  env?: { key?: string; value?: string }[];
  idleTimeout?: number;
  executionTimeoutMs?: number;
  scalerType?: string;
  scalerValue?: number;
  workersMin?: number;
  workersMax?: number;
  workersStandby?: number;
  flashBootType?: FlashBoot;
  modelReferences?: string[];
  flashEnvironmentId?: string;
}

export const WORD_BY_ENDPOINT_TYPE: Record<EndpointType, NonNullable<SaveEndpointInput['type']>> = {
  QUEUE: 'QB',
  LOAD_BALANCER: 'LB',
};
const ENDPOINT_TYPE_BY_WORD: Record<NonNullable<SaveEndpointInput['type']>, EndpointType> = {
  QB: 'QUEUE',
  LB: 'LOAD_BALANCER',
};
/** From before there was a field for it: a name that ends so asks for FlashBoot. */
const FLASHBOOT_SUFFIX = '-fb';

export function createEndpointInput(
  input: SaveEndpointInput,
  dataCenters: readonly DataCenterDefinition[],
): EndpointInput {
  const { templateId, template, instanceIds = [], gpuIds, name } = input;
  if ((templateId === undefined) === (template === undefined))
    throw ruleError('give exactly one of templateId, template and hubReleaseId');
  const compute =
    input.computeType ?? (gpuIds !== undefined ? 'GPU' : instanceIds.length > 0 ? 'CPU' : undefined);
  return {
    ...referencesOf(input),
    settings: (base) => ({
      ...(compute !== undefined && { compute }),
      ...(input.type === 'LB' && { scalerType: 'REQUEST_COUNT' }),
      ...(name?.endsWith(FLASHBOOT_SUFFIX) && { flashboot: 'FLASHBOOT' }),
      ...settingsOf(input, base, dataCenters),
    }),
  };
}

export function updateEndpointInput(
  input: SaveEndpointInput,
  dataCenters: readonly DataCenterDefinition[],
): EndpointInput {
  return {
    ...referencesOf(input),
    settings: (base) => ({
      ...(input.computeType !== undefined && { compute: input.computeType }),
      ...settingsOf(input, base, dataCenters),
    }),
  };
}

function referencesOf({
  templateId,
  template,
  networkVolumeId,
  networkVolumeIds,
}: SaveEndpointInput): Omit<EndpointInput, 'settings'> {
  const use: TemplateUse | undefined =
    template !== undefined
      ? { as: 'own', fields: templateFields(template) }
      : templateId !== undefined
        ? { as: 'link', id: templateId }
        : undefined;
  const volumes = [networkVolumeId, ...(networkVolumeIds ?? []).map((entry) => entry.networkVolumeId)].filter(
    (id) => id !== undefined,
  );
  return {
    ...(use !== undefined && { template: use }),
    ...((networkVolumeId !== undefined || networkVolumeIds !== undefined) && { networkVolumeIds: volumes }),
  };
}

/**
 * Only the fields that were given. Some clients read an endpoint, change one field and write everything
 * back: what was shown, said again, changes nothing, and a zero where none can be counts as
 * not said.
 */
function settingsOf(
  input: SaveEndpointInput,
  base: Endpoint,
  dataCenters: readonly DataCenterDefinition[],
): Partial<EndpointSettings> {
  const {
    name,
    type,
    gpuIds,
    gpuCount,
    instanceIds = [],
    allowedCudaVersions,
    minCudaVersion,
    locations,
    compliance,
    env,
    idleTimeout,
    executionTimeoutMs,
  } = input;
  const { scalerValue, workersMin, workersMax, workersStandby, flashBootType, modelReferences } = input;
  const scalerType = input.scalerType === undefined ? undefined : scalerTypeOf(input.scalerType);
  return {
    ...(name !== undefined && { name }),
    ...(type !== undefined && { type: ENDPOINT_TYPE_BY_WORD[type] }),
    ...(gpuIds !== undefined && gpuIds !== formatGpuIds(base) && parseGpuIds(gpuIds)),
    ...(isNonZero(gpuCount) && { gpuCount }),
    ...(instanceIds.length > 0 && { cpuFlavors: instanceIds.map(parseCpuInstanceId) }),
    ...(allowedCudaVersions !== undefined && { allowedCudaVersions: splitCommaList(allowedCudaVersions) }),
    ...(minCudaVersion !== undefined && { minCudaVersion }),
    ...(locations !== undefined &&
      locations !== locationsOf(base) && {
        locations,
        dataCenterIds: dataCentersInLocations(locations, dataCenters),
      }),
    ...(compliance !== undefined && { compliance }),
    ...(env !== undefined && { env: mergeEnvironment(input, environmentFromList(env), base) }),
    ...(isNonZero(idleTimeout) && { idleTimeout }),
    ...(executionTimeoutMs !== undefined && { executionTimeout: executionTimeoutMs }),
    ...(scalerType !== undefined && { scalerType }),
    ...(isNonZero(scalerValue) && { scalerValue: exactScalerValue(scalerValue, base, scalerType) }),
    ...(workersMin !== undefined && { workersMin }),
    ...(workersMax !== undefined && { workersMax }),
    ...(workersStandby !== undefined && { workersStandby }),
    ...(flashBootType !== undefined && { flashboot: flashBootType }),
    ...(modelReferences !== undefined && { modelReferences }),
  };
}

/**
 * Given together with a template, variables are added to the template's; given alone, they replace the
 * present ones.
 */
function mergeEnvironment(
  { id, templateId, template }: SaveEndpointInput,
  given: Record<string, string>,
  base: Endpoint,
): Record<string, string> {
  const besideTemplate =
    id === undefined ||
    template !== undefined ||
    (templateId !== undefined && templateId !== base.templateId);
  return besideTemplate ? { ...base.env, ...given } : given;
}

function scalerTypeOf(word: string): ScalerType {
  const found = SCALER_TYPES.find((known) => known === word.toUpperCase());
  if (found === undefined) throw ruleError(`scalerType must be one of ${SCALER_TYPES.join(', ')}`);
  return found;
}

function isNonZero(value: number | undefined): value is number {
  return value !== undefined && value !== 0;
}

function splitCommaList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}
