import { CPU_FLAVORS } from '../../domain/catalog/cpu-flavors.ts';
import { DEFAULT_VCPU_COUNT } from '../../domain/catalog/cpu-selection.ts';
import type { HardwareRequest } from '../../domain/placement/pod-placement.ts';
import { ANY_HARDWARE, V1_POD_DEFAULTS } from '../../domain/pods/pod-input.ts';
import type { NewPod, PodInput, PodSettings } from '../../domain/pods/pod-input.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';
import { formatArgs, parseArgs } from '../../domain/templates/container-command.ts';
import { splitPorts } from '../../domain/templates/container-ports.ts';
import { ruleError } from '../../support/errors.ts';
import type { Static } from '../rest/json-schema.ts';
import type { createPod, updatePod } from './pods.v1.schema.ts';

type CreateBody = Static<typeof createPod>;
type UpdateBody = Static<typeof updatePod>;

/** The data centers that a body leaves: those it names, and of them those in its countries. */
export function allowedDataCenterIds(
  inCountries: readonly { id: string }[],
  { dataCenterIds = [], countryCodes = [] }: CreateBody,
): string[] {
  if (countryCodes.length === 0) return dataCenterIds;
  const ids = inCountries
    .map(({ id }) => id)
    .filter((id) => dataCenterIds.length === 0 || dataCenterIds.includes(id));
  if (ids.length === 0) {
    const among = dataCenterIds.length > 0 ? ` and among ${dataCenterIds.join(', ')}` : '';
    throw ruleError(`no data center here is in ${countryCodes.join(', ')}${among}`);
  }
  return ids;
}

export function createPodInput(body: CreateBody, dataCenterIds: readonly string[]): NewPod {
  const { templateId, networkVolumeId, cloudType, interruptible, dockerArgs } = body;
  const hardware = hardwareOf(body, dataCenterIds);
  if (templateId === undefined && body.imageName === undefined)
    throw ruleError('send an imageName, or a templateId whose template has one');
  return {
    ...referencesOf(body),
    ...(templateId !== undefined && { template: { id: templateId, isRecorded: true } }),
    ...(networkVolumeId !== undefined && networkVolumeId !== '' && { networkVolumeId }),
    hardware,
    defaults: {
      ...V1_POD_DEFAULTS,
      volumeSize: hardware.compute === 'GPU' ? V1_POD_DEFAULTS.volumeSize : 0,
      startSsh: true,
    },
    settings: (base) => ({
      ...(dockerArgs !== undefined && { args: dockerArgs }),
      ...settingsOf(body, base),
      env: { ...base.env, ...body.env },
      ...(networkVolumeId !== undefined && networkVolumeId !== '' && { volumeSize: 0 }),
      ...(cloudType !== undefined && { cloud: cloudType }),
      ...(interruptible !== undefined && { interruptible }),
    }),
  };
}

export function updatePodInput(body: UpdateBody): PodInput {
  return {
    ...referencesOf(body),
    settings: (base) => ({ ...settingsOf(body, base), ...(body.env !== undefined && { env: body.env }) }),
  };
}

function referencesOf({ containerRegistryAuthId }: UpdateBody): Pick<PodInput, 'registryId'> {
  return containerRegistryAuthId === undefined
    ? {}
    : { registryId: containerRegistryAuthId === '' ? null : containerRegistryAuthId };
}

/** Only the fields of the body; null means none. Without the environment, which may build on the template's. */
function settingsOf(body: UpdateBody, base: Pod): Partial<PodSettings> {
  const {
    name,
    imageName,
    containerDiskInGb,
    dockerEntrypoint,
    dockerStartCmd,
    globalNetworking,
    locked,
    ports,
    volumeInGb,
    volumeMountPath,
  } = body;
  const command = parseArgs(base.args);
  return {
    ...(name !== undefined && { name }),
    ...(imageName !== undefined && { image: imageName }),
    ...(containerDiskInGb !== undefined && { containerDisk: containerDiskInGb ?? 0 }),
    ...((dockerEntrypoint !== undefined || dockerStartCmd !== undefined) && {
      args: formatArgs({
        entrypoint: dockerEntrypoint ?? command.entrypoint,
        cmd: dockerStartCmd ?? command.cmd,
      }),
    }),
    ...(globalNetworking !== undefined && { globalNetworking }),
    ...(locked !== undefined && { locked }),
    ...(ports !== undefined && { ports: splitPorts(ports) }),
    ...(volumeInGb !== undefined && { volumeSize: volumeInGb ?? 0 }),
    ...(volumeMountPath !== undefined && { volumePath: volumeMountPath }),
  };
}

function hardwareOf(body: CreateBody, dataCenterIds: readonly string[]): HardwareRequest {
  const {
    computeType = 'GPU',
    gpuTypeIds = [],
    gpuCount = 1,
    cpuFlavorIds = [],
    vcpuCount = DEFAULT_VCPU_COUNT,
    allowedCudaVersions,
    minCudaVersion,
  } = body;
  const where = { dataCenterIds, dataCenterOrder: body.dataCenterPriority ?? 'availability' };
  if (computeType === 'CPU') {
    const flavors = cpuFlavorIds.length > 0 ? cpuFlavorIds : CPU_FLAVORS.map(({ id }) => id);
    return {
      ...ANY_HARDWARE,
      ...where,
      compute: 'CPU',
      cpuFlavors: [...new Set(flavors)].map((id) => ({ id, vcpuCount })),
    };
  }
  return {
    ...ANY_HARDWARE,
    ...where,
    gpuTypeIds,
    gpuOrder: body.gpuTypePriority ?? 'availability',
    gpuCount,
    minVcpuPerGpu: body.minVCPUPerGPU ?? 0,
    minMemoryPerGpu: body.minRAMPerGPU ?? 0,
    cuda: {
      ...(allowedCudaVersions !== undefined && { allowed: allowedCudaVersions }),
      ...(minCudaVersion !== undefined && minCudaVersion !== '' && { minimum: minCudaVersion }),
    },
  };
}
