import { parseCpuInstanceId } from '../../domain/catalog/cpu-selection.ts';
import { dataCentersInLocations } from '../../domain/endpoints/endpoint-locations.ts';
import type { DataCenterDefinition } from '../../domain/catalog/data-centers.ts';
import { ANY_HARDWARE, DEFAULT_POD_NAME } from '../../domain/pods/pod-input.ts';
import type { NewPod, PodInput, PodSettings } from '../../domain/pods/pod-input.ts';
import type { HardwareRequest } from '../../domain/placement/pod-placement.ts';
import { splitPorts } from '../../domain/templates/container-ports.ts';
import { ruleError } from '../../support/errors.ts';
import { DEFAULT_CPU_POD_INSTANCE } from './graphql-client-defaults.ts';
import { parseDateTime, requireFields } from './graphql-input-checks.ts';
import { environmentFromList } from './templates.resolvers.ts';
import type { Pod, CloudType } from '../../domain/pods/pod-record.ts';
import { type ComputeType } from '../../domain/records.ts';

/** The input of the mutations that deploy a pod. */
export interface DeployPodInput {
  name?: string;
  imageName?: string;
  templateId?: string;
  cloudType?: CloudType | 'ALL';
  computeType?: ComputeType;
  gpuTypeId?: string;
  gpuTypeIdList?: string[];
  gpuCount?: number;
  instanceId?: string;
  instanceIds?: string[];
  minVcpuCount?: number;
  minMemoryInGb?: number;
  allowedCudaVersions?: string[];
  cudaVersion?: string;
  minCudaVersion?: string;
  dataCenterId?: string;
  countryCode?: string;
  containerDiskInGb?: number;
  volumeInGb?: number;
  volumeMountPath?: string;
  networkVolumeId?: string;
  dockerArgs?: string;
  ports?: string;
  env?: { key?: string; value?: string }[];
  containerRegistryAuthId?: string;
  startSsh?: boolean;
  startJupyter?: boolean;
  stopAfter?: unknown;
  terminateAfter?: unknown;
  globalNetwork?: boolean;
  bidPerGpu?: number;
}

export interface EditPodInput
  extends Pick<
    DeployPodInput,
    | 'imageName'
    | 'dockerArgs'
    | 'env'
    | 'ports'
    | 'containerDiskInGb'
    | 'volumeInGb'
    | 'volumeMountPath'
    | 'containerRegistryAuthId'
  > {
  podId?: string;
}

interface DeployContext {
  dataCenters: readonly DataCenterDefinition[];
  jupyterPassword(base: Pod): string;
}

export function createPodInput(
  input: DeployPodInput,
  interruptible: boolean,
  { dataCenters, jupyterPassword }: DeployContext,
): NewPod {
  const {
    templateId,
    networkVolumeId,
    containerRegistryAuthId,
    cloudType,
    startSsh,
    startJupyter,
    stopAfter,
    terminateAfter,
    globalNetwork,
    bidPerGpu,
    name,
  } = input;
  if (templateId === undefined) requireFields(input, 'imageName');
  if (interruptible) requireFields(input, 'bidPerGpu');
  return {
    ...(templateId !== undefined && { template: { id: templateId, isRecorded: true } }),
    ...(containerRegistryAuthId !== undefined && { registryId: containerRegistryAuthId }),
    ...(networkVolumeId !== undefined && { networkVolumeId }),
    hardware: hardwareOf(input, dataCenters),
    defaults: { name: DEFAULT_POD_NAME },
    settings: (base) => ({
      ...settingsOf(input),
      env: {
        ...(startJupyter === true && { JUPYTER_PASSWORD: jupyterPassword(base) }),
        ...base.env,
        ...environmentFromList(input.env ?? []),
      },
      ...(name !== undefined && { name }),
      // All clouds: the secure one first.
      ...(cloudType === 'COMMUNITY' && { cloud: cloudType }),
      ...(startSsh !== undefined && { startSsh }),
      ...(startJupyter !== undefined && { startJupyter }),
      ...(stopAfter !== undefined && { stopAfter: parseDateTime('stopAfter', stopAfter) }),
      ...(terminateAfter !== undefined && {
        terminateAfter: parseDateTime('terminateAfter', terminateAfter),
      }),
      ...(globalNetwork !== undefined && { globalNetworking: globalNetwork }),
      ...(networkVolumeId !== undefined && { volumeSize: 0 }),
      ...(interruptible && { interruptible, bidPerGpu: bidPerGpu ?? null }),
    }),
  };
}

export function updatePodInput(input: EditPodInput): PodInput {
  const { env, containerRegistryAuthId } = input;
  return {
    ...(containerRegistryAuthId !== undefined && { registryId: containerRegistryAuthId }),
    settings: () => ({ ...settingsOf(input), ...(env !== undefined && { env: environmentFromList(env) }) }),
  };
}

/** Only the fields that were given. */
function settingsOf({
  imageName,
  dockerArgs,
  ports,
  containerDiskInGb,
  volumeInGb,
  volumeMountPath,
}: EditPodInput): Partial<PodSettings> {
  return {
    ...(imageName !== undefined && { image: imageName }),
    ...(dockerArgs !== undefined && { args: dockerArgs }),
    ...(ports !== undefined && { ports: splitPorts(ports) }),
    ...(containerDiskInGb !== undefined && { containerDisk: containerDiskInGb }),
    ...(volumeInGb !== undefined && { volumeSize: volumeInGb }),
    ...(volumeMountPath !== undefined && { volumePath: volumeMountPath }),
  };
}

/** Speeds and compliance are accepted and ignored: Berth does not distinguish machines by them. */
function hardwareOf(input: DeployPodInput, dataCenters: readonly DataCenterDefinition[]): HardwareRequest {
  const where = {
    dataCenterIds: allowedDataCenterIds(input, dataCenters),
    dataCenterOrder: 'custom',
  } as const;
  const instanceIds = [
    ...(input.instanceId === undefined ? [] : [input.instanceId]),
    ...(input.instanceIds ?? []),
  ];
  const gpuTypeIds = [
    ...(input.gpuTypeId === undefined ? [] : [input.gpuTypeId]),
    ...(input.gpuTypeIdList ?? []),
  ];
  // Earlier clients ask for a CPU pod with no GPU type and a count of 0.
  const namesNoGpu = gpuTypeIds.length === 0 && (instanceIds.length > 0 || input.gpuCount === 0);
  if (input.computeType === 'CPU' || namesNoGpu) {
    const instances = instanceIds.length === 0 ? [DEFAULT_CPU_POD_INSTANCE] : instanceIds;
    return { ...ANY_HARDWARE, ...where, compute: 'CPU', cpuFlavors: instances.map(parseCpuInstanceId) };
  }
  const { gpuCount = 1, minVcpuCount = 0, minMemoryInGb = 0, minCudaVersion } = input;
  const allowed =
    input.allowedCudaVersions ?? (input.cudaVersion === undefined ? undefined : [input.cudaVersion]);
  return {
    ...ANY_HARDWARE,
    ...where,
    gpuTypeIds,
    gpuOrder: 'custom',
    gpuCount,
    minVcpuPerGpu: minVcpuCount / Math.max(1, gpuCount),
    minMemoryPerGpu: minMemoryInGb / Math.max(1, gpuCount),
    cuda: {
      ...(allowed !== undefined && { allowed }),
      ...(minCudaVersion !== undefined && { minimum: minCudaVersion }),
    },
  };
}

function allowedDataCenterIds(
  { dataCenterId, countryCode }: DeployPodInput,
  dataCenters: readonly DataCenterDefinition[],
): string[] {
  if (dataCenterId !== undefined) return [dataCenterId];
  if (countryCode === undefined) return [];
  const ids = dataCentersInLocations(countryCode, dataCenters);
  if (ids.length === 0)
    throw ruleError(`no data center here is in ${JSON.stringify(countryCode.slice(0, 16))}`);
  return ids;
}
