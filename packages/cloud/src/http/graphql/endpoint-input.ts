import type { DataCenterDefinition } from '../../resources/catalog/data-centers.ts';
import { parseInstanceId } from '../../resources/endpoints/cpu-selection.ts';
import { formatGpuIds, parseGpuIds } from '../../resources/endpoints/gpu-selection.ts';
import type { EndpointOrder, EndpointSettings, TemplateUse } from '../../resources/endpoints/order.ts';
import { dataCentersAt, locationsOf } from '../../resources/endpoints/placement.ts';
import { exactScalerValue } from '../../resources/endpoints/scaler-value.ts';
import type { Compute, Endpoint, EndpointType, FlashBoot, ScalerType } from '../../store/records.ts';
import { rule } from '../../support/errors.ts';
import type { SaveTemplate } from './templates.ts';
import { environmentOf, templateFields } from './templates.ts';

/** What saveEndpoint may be told. */
export interface SaveEndpoint {
  id?: string;
  name?: string;
  templateId?: string;
  template?: SaveTemplate;
  hubReleaseId?: string;
  gpuIds?: string;
  gpuCount?: number;
  instanceIds?: string[];
  type?: 'QB' | 'LB';
  computeType?: Compute;
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

export const ENDPOINT_TYPES: Record<EndpointType, NonNullable<SaveEndpoint['type']>> = {
  QUEUE: 'QB',
  LOAD_BALANCER: 'LB',
};
const TYPES: Record<NonNullable<SaveEndpoint['type']>, EndpointType> = { QB: 'QUEUE', LB: 'LOAD_BALANCER' };
const SCALER_TYPES: readonly ScalerType[] = ['QUEUE_DELAY', 'REQUEST_COUNT'];
/** From before there was a field for it: a name that ends so asks for FlashBoot. */
const FLASHBOOT_SUFFIX = '-fb';

export function orderOfCreation(
  input: SaveEndpoint,
  dataCenters: readonly DataCenterDefinition[],
): EndpointOrder {
  const { templateId, template, instanceIds = [], gpuIds, name } = input;
  if ((templateId === undefined) === (template === undefined))
    throw rule('give exactly one of templateId, template and hubReleaseId');
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

export function orderOfChange(
  input: SaveEndpoint,
  dataCenters: readonly DataCenterDefinition[],
): EndpointOrder {
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
}: SaveEndpoint): Omit<EndpointOrder, 'settings'> {
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
 * Only what is said. Some clients read an endpoint, change one field and write everything
 * back: what was shown, said again, changes nothing, and a zero where none can be counts as
 * not said.
 */
function settingsOf(
  input: SaveEndpoint,
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
    ...(type !== undefined && { type: TYPES[type] }),
    ...(gpuIds !== undefined && gpuIds !== formatGpuIds(base) && parseGpuIds(gpuIds)),
    ...(isCount(gpuCount) && { gpuCount }),
    ...(instanceIds.length > 0 && { cpuFlavors: instanceIds.map(parseInstanceId) }),
    ...(allowedCudaVersions !== undefined && { allowedCudaVersions: items(allowedCudaVersions) }),
    ...(minCudaVersion !== undefined && { minCudaVersion }),
    ...(locations !== undefined &&
      locations !== locationsOf(base) && { locations, dataCenterIds: dataCentersAt(locations, dataCenters) }),
    ...(compliance !== undefined && { compliance }),
    ...(env !== undefined && { env: environmentAfter(input, environmentOf(env), base) }),
    ...(isCount(idleTimeout) && { idleTimeout }),
    ...(executionTimeoutMs !== undefined && { executionTimeout: executionTimeoutMs }),
    ...(scalerType !== undefined && { scalerType }),
    ...(isCount(scalerValue) && { scalerValue: exactScalerValue(scalerValue, base, scalerType) }),
    ...(workersMin !== undefined && { workersMin }),
    ...(workersMax !== undefined && { workersMax }),
    ...(workersStandby !== undefined && { workersStandby }),
    ...(flashBootType !== undefined && { flashboot: flashBootType }),
    ...(modelReferences !== undefined && { modelReferences }),
  };
}

/** What is said beside a template adds to the template's variables; alone, it replaces those that are there. */
function environmentAfter(
  { id, templateId, template }: SaveEndpoint,
  said: Record<string, string>,
  base: Endpoint,
): Record<string, string> {
  const besideTemplate =
    id === undefined ||
    template !== undefined ||
    (templateId !== undefined && templateId !== base.templateId);
  return besideTemplate ? { ...base.env, ...said } : said;
}

function scalerTypeOf(word: string): ScalerType {
  const found = SCALER_TYPES.find((known) => known === word.toUpperCase());
  if (found === undefined) throw rule(`scalerType must be one of ${SCALER_TYPES.join(', ')}`);
  return found;
}

function isCount(value: number | undefined): value is number {
  return value !== undefined && value !== 0;
}

function items(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}
