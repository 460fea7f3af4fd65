import { parseInstanceId } from '../../resources/endpoints/cpu-selection.ts';
import { dataCentersAt } from '../../resources/endpoints/placement.ts';
import type { DataCenterDefinition } from '../../resources/catalog/data-centers.ts';
import { ANY_HARDWARE } from '../../resources/pods/order.ts';
import type { NewPod, PodChange, PodSettings } from '../../resources/pods/order.ts';
import type { HardwareWish } from '../../resources/pods/placement.ts';
import { splitPorts } from '../../resources/templates/ports.ts';
import type { Pod } from '../../store/pods.ts';
import { rule } from '../../support/errors.ts';
import { CPU_POD_INSTANCE } from './client-defaults.ts';
import { instantOf, required } from './inputs.ts';
import { environmentOf } from './templates.ts';

/** What the mutations that deploy a pod may be told. */
export interface DeployPod {
  name?: string;
  imageName?: string;
  templateId?: string;
  cloudType?: 'SECURE' | 'COMMUNITY' | 'ALL';
  computeType?: 'CPU' | 'GPU';
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

export interface EditPod
  extends Pick<
    DeployPod,
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

const DEFAULT_NAME = 'my pod';

interface Surroundings {
  dataCenters: readonly DataCenterDefinition[];
  jupyterPassword(base: Pod): string;
}

export function orderOf(
  input: DeployPod,
  interruptible: boolean,
  { dataCenters, jupyterPassword }: Surroundings,
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
  if (templateId === undefined) required(input, 'imageName');
  if (interruptible) required(input, 'bidPerGpu');
  return {
    ...(templateId !== undefined && { template: { id: templateId, remembered: true } }),
    ...(containerRegistryAuthId !== undefined && { registryId: containerRegistryAuthId }),
    ...(networkVolumeId !== undefined && { networkVolumeId }),
    hardware: hardwareOf(input, dataCenters),
    defaults: { name: DEFAULT_NAME },
    settings: (base) => ({
      ...settingsOf(input),
      env: {
        ...(startJupyter === true && { JUPYTER_PASSWORD: jupyterPassword(base) }),
        ...base.env,
        ...environmentOf(input.env ?? []),
      },
      ...(name !== undefined && { name }),
      // All clouds: the secure one first.
      ...(cloudType === 'COMMUNITY' && { cloud: cloudType }),
      ...(startSsh !== undefined && { startSsh }),
      ...(startJupyter !== undefined && { startJupyter }),
      ...(stopAfter !== undefined && { stopAfter: instantOf('stopAfter', stopAfter) }),
      ...(terminateAfter !== undefined && { terminateAfter: instantOf('terminateAfter', terminateAfter) }),
      ...(globalNetwork !== undefined && { globalNetworking: globalNetwork }),
      ...(networkVolumeId !== undefined && { volumeSize: 0 }),
      ...(interruptible && { interruptible, bidPerGpu: bidPerGpu ?? null }),
    }),
  };
}

export function changeOf(input: EditPod): PodChange {
  const { env, containerRegistryAuthId } = input;
  return {
    ...(containerRegistryAuthId !== undefined && { registryId: containerRegistryAuthId }),
    settings: () => ({ ...settingsOf(input), ...(env !== undefined && { env: environmentOf(env) }) }),
  };
}

/** Only what is said. */
function settingsOf({
  imageName,
  dockerArgs,
  ports,
  containerDiskInGb,
  volumeInGb,
  volumeMountPath,
}: EditPod): Partial<PodSettings> {
  return {
    ...(imageName !== undefined && { image: imageName }),
    ...(dockerArgs !== undefined && { args: dockerArgs }),
    ...(ports !== undefined && { ports: splitPorts(ports) }),
    ...(containerDiskInGb !== undefined && { containerDisk: containerDiskInGb }),
    ...(volumeInGb !== undefined && { volumeSize: volumeInGb }),
    ...(volumeMountPath !== undefined && { volumePath: volumeMountPath }),
  };
}

/** Speeds and compliance are not told apart here: the machines are the operator's own. */
function hardwareOf(input: DeployPod, dataCenters: readonly DataCenterDefinition[]): HardwareWish {
  const where = { dataCenterIds: placesOf(input, dataCenters), dataCenterOrder: 'custom' } as const;
  const instanceIds = [
    ...(input.instanceId === undefined ? [] : [input.instanceId]),
    ...(input.instanceIds ?? []),
  ];
  const gpuTypeIds = [
    ...(input.gpuTypeId === undefined ? [] : [input.gpuTypeId]),
    ...(input.gpuTypeIdList ?? []),
  ];
  if (input.computeType === 'CPU' || (instanceIds.length > 0 && gpuTypeIds.length === 0)) {
    const instances = instanceIds.length === 0 ? [CPU_POD_INSTANCE] : instanceIds;
    return { ...ANY_HARDWARE, ...where, compute: 'CPU', cpuFlavors: instances.map(parseInstanceId) };
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

function placesOf(
  { dataCenterId, countryCode }: DeployPod,
  dataCenters: readonly DataCenterDefinition[],
): string[] {
  if (dataCenterId !== undefined) return [dataCenterId];
  if (countryCode === undefined) return [];
  const ids = dataCentersAt(countryCode, dataCenters);
  if (ids.length === 0) throw rule(`no data center here is in ${JSON.stringify(countryCode.slice(0, 16))}`);
  return ids;
}
