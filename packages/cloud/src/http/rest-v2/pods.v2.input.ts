import { ANY_HARDWARE } from '../../domain/pods/pod-input.ts';
import type { NewPod, PodInput, PodSettings } from '../../domain/pods/pod-input.ts';
import type { HardwareRequest } from '../../domain/placement/pod-placement.ts';
import { ruleError } from '../../support/errors.ts';
import type { Static } from '../rest/json-schema.ts';
import { mergeCommand } from './container.v2.schema.ts';
import type { createPod, updatePod } from './pods.v2.schema.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';

/** What a body of REST v2 asks of a pod. */

type CreateBody = Static<typeof createPod>;
type UpdateBody = Static<typeof updatePod>;
type Mounts = NonNullable<UpdateBody['mounts']>;

export function createPodInput(body: CreateBody, jupyterPassword: (base: Pod) => string): NewPod {
  const { mounts, startSsh, startJupyter, cloud } = body;
  checkOneMount(mounts);
  const network = mounts?.network?.[0];
  const persistent = mounts?.persistent;
  if (persistent !== undefined && body.cpu !== undefined)
    throw ruleError('a CPU pod has no persistent mount; use a network volume');
  return {
    ...referencesOf(body),
    hardware: hardwareOf(body),
    ...(network !== undefined && { networkVolumeId: network.volumeId }),
    settings: (base) => ({
      ...settingsOf(body, base),
      env: {
        ...(startJupyter === true && { JUPYTER_PASSWORD: jupyterPassword(base) }),
        ...base.env,
        ...body.env,
      },
      ...(startSsh !== undefined && { startSsh }),
      ...(startJupyter !== undefined && { startJupyter }),
      ...(cloud !== undefined && { cloud }),
      ...(persistent !== undefined && { volumeSize: persistent.size, volumePath: persistent.path }),
      ...(network !== undefined && { volumePath: network.path }),
    }),
  };
}

export function updatePodInput(body: UpdateBody): PodInput {
  checkOneMount(body.mounts);
  return {
    ...referencesOf(body),
    settings: (base) => ({
      ...settingsOf(body, base),
      // The template's variables are in the base already; without a template, the map replaces the present
      // one.
      ...(body.env !== undefined && {
        env: body.templateId === undefined ? body.env : { ...base.env, ...body.env },
      }),
      ...(body.locked !== undefined && { locked: body.locked }),
      ...mountSettings(body.mounts, base),
    }),
  };
}

function referencesOf({ templateId, registry }: UpdateBody): Omit<PodInput, 'settings'> {
  return {
    ...(templateId !== undefined && { template: { id: templateId, isRecorded: false } }),
    ...(registry !== undefined && { registryId: registry === '' ? null : registry }),
  };
}

/** Only the fields of the body, without the environment, which may build on the template's. */
function settingsOf(body: UpdateBody, base: Pod): Partial<PodSettings> {
  const { name, image, disk, ports, globalNetworking, stopAfter, terminateAfter } = body;
  return {
    args: mergeCommand(body, base.args),
    ...(name !== undefined && { name }),
    ...(image !== undefined && { image }),
    ...(disk !== undefined && { containerDisk: disk }),
    ...(ports !== undefined && { ports }),
    ...(globalNetworking !== undefined && { globalNetworking }),
    ...(stopAfter !== undefined && { stopAfter: parseDateTime(stopAfter) }),
    ...(terminateAfter !== undefined && { terminateAfter: parseDateTime(terminateAfter) }),
  };
}

/** v2 takes the GPU type that is named and no other. */
function hardwareOf({ gpu, cpu, dataCenterIds = [] }: CreateBody): HardwareRequest {
  if (gpu !== undefined && cpu !== undefined)
    throw ruleError('gpu and cpu exclude each other; send exactly one of them');
  const where = { dataCenterIds, dataCenterOrder: 'custom' } as const;
  if (cpu !== undefined) return { ...ANY_HARDWARE, ...where, compute: 'CPU', cpuFlavors: [cpu] };
  if (gpu === undefined) throw ruleError('send exactly one of gpu and cpu');
  const {
    id,
    count = 1,
    allowedCudaVersions,
    minCudaVersion,
    minRamPerGpu = 0,
    minVcpuCountPerGpu = 0,
  } = gpu;
  if (minCudaVersion !== undefined && (allowedCudaVersions ?? []).length > 0)
    throw ruleError('gpu.allowedCudaVersions and gpu.minCudaVersion exclude each other; send one of them');
  return {
    ...ANY_HARDWARE,
    ...where,
    gpuTypeIds: [id],
    gpuCount: count,
    minMemoryPerGpu: minRamPerGpu,
    minVcpuPerGpu: minVcpuCountPerGpu,
    cuda: {
      ...(allowedCudaVersions !== undefined && { allowed: allowedCudaVersions }),
      ...(minCudaVersion !== undefined && { minimum: minCudaVersion }),
    },
  };
}

function checkOneMount(mounts: Mounts | undefined): void {
  if (mounts?.persistent !== undefined && mounts.network !== undefined)
    throw ruleError('mounts.persistent and mounts.network exclude each other; send one of them');
  if (mounts?.network?.length === 0)
    throw ruleError('mounts.network must have one entry; a pod keeps the mount that it was made with');
}

/**
 * The kind of a mount and its network volume are fixed when a pod is made; its path may change, and a disk
 * may grow.
 */
function mountSettings(mounts: Mounts | undefined, base: Pod): Partial<PodSettings> {
  const { persistent, network: [network] = [] } = mounts ?? {};
  if (persistent !== undefined) {
    if (base.networkVolumeId !== null)
      throw ruleError('this pod has a network volume, and that is fixed: it takes no persistent mount');
    if (base.volumeSize === 0) throw ruleError('this pod was made without a mount, and that is fixed');
    return { volumeSize: persistent.size, volumePath: persistent.path };
  }
  if (network === undefined) return {};
  if (base.networkVolumeId === null)
    throw ruleError(
      `this pod was made ${base.volumeSize > 0 ? 'with a persistent mount' : 'without a mount'}, and ` +
        'that is fixed: it takes no network volume',
    );
  if (network.volumeId !== base.networkVolumeId)
    throw ruleError(`this pod has the network volume ${base.networkVolumeId}, and that is fixed`);
  return { volumePath: network.path };
}

function parseDateTime(instant: string | null): number | null {
  return instant === null ? null : Date.parse(instant);
}
