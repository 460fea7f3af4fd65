import type { Pod } from '../../domain/pods/pod-record.ts';
import { desiredStatus, holdsHardware, lastStatusChange } from '../../domain/pods/pod-states.ts';
import type { NetworkVolume } from '../../domain/records.ts';
import { parseArgs } from '../../domain/templates/container-command.ts';
import type { GpuOffer } from '../../resources/catalog/gpu-offer.ts';
import type { PodRuntime } from '../../resources/pods/pod-runtime.ts';
import { isoTime } from '../../support/clock.ts';
import type { Static } from '../rest/json-schema.ts';
import type { pod, podGpu, podMachine, podRuntime } from './pods.v1.schema.ts';
import { withoutUnset } from './unset-fields.ts';

/** A pod, or a worker in the form of one. */
export interface ListedPod {
  pod: Pod;
  endpointId?: string;
  version?: number;
}

export function serializePod(
  { pod: found, endpointId, version }: ListedPod,
  now: PodRuntime | null,
  offers: readonly GpuOffer[],
  volumes: readonly NetworkVolume[],
  wholeMachine: boolean,
  isVirtual: boolean,
): Static<typeof pod> {
  const { entrypoint, cmd } = parseArgs(found.args);
  const reached = (now?.ports ?? []).filter((port) => port.public !== null);
  const offer = offers.find(({ type }) => type.id === found.gpuTypeId);
  const shownGpu =
    found.gpuTypeId === null
      ? undefined
      : {
          id: found.gpuTypeId,
          count: found.gpuCount,
          ...(isVirtual && { virtual: true }),
          ...(offer !== undefined && { displayName: offer.type.name, ...serializePrices(offer) }),
        };
  const volume = volumes.find(({ id }) => id === found.networkVolumeId);
  return {
    id: found.id,
    name: found.name,
    desiredStatus: desiredStatus(found),
    lastStatusChange: lastStatusChange(found),
    image: found.image,
    imageName: found.image,
    env: found.env,
    ports: found.ports,
    dockerEntrypoint: entrypoint,
    dockerStartCmd: cmd,
    containerDiskInGb: found.containerDisk,
    volumeInGb: found.volumeSize,
    volumeMountPath: found.volumePath,
    volumeEncrypted: false,
    ...(shownGpu !== undefined && { gpu: shownGpu }),
    ...(found.cpuFlavorId !== null && { cpuFlavorId: found.cpuFlavorId }),
    gpuCount: found.gpuCount,
    vcpuCount: found.vcpuCount,
    memoryInGb: found.memoryInGb,
    machineId: machineId(found),
    machine: wholeMachine ? serializeMachine(found, shownGpu) : {},
    publicIp: reached[0]?.ip ?? null,
    portMappings: holdsHardware(found)
      ? Object.fromEntries(reached.map((port) => [String(port.private), port.public ?? 0]))
      : null,
    costPerHr: found.costPerHour,
    adjustedCostPerHr: holdsHardware(found) ? found.costPerHour : 0,
    interruptible: found.interruptible,
    locked: found.locked,
    globalNetworking: found.globalNetworking,
    consumerUserId: found.accountId,
    createdAt: isoTime(found.createdAt),
    ...withoutUnset({
      containerRegistryAuthId: found.registryId,
      templateId: found.templateId,
      lastStartedAt: found.startedAt === null ? null : isoTime(found.startedAt),
      networkVolumeId: found.networkVolumeId,
    }),
    uptimeSeconds: now?.uptime ?? 0,
    runtime: now === null ? null : serializeRuntime(found.id, now),
    ...(volume !== undefined && {
      networkVolume: {
        id: volume.id,
        name: volume.name,
        size: volume.size,
        dataCenterId: volume.dataCenterId,
      },
    }),
    ...(endpointId !== undefined && { endpointId, aiApiId: endpointId, slsVersion: version ?? 0 }),
  };
}

function serializeRuntime(
  podId: string,
  { uptime, cpu, memory, gpus, ports }: PodRuntime,
): Static<typeof podRuntime> {
  return {
    uptimeInSeconds: uptime,
    container: { cpuPercent: cpu, memoryPercent: memory },
    gpus: gpus.map(({ util, memoryUtil }, index) => ({
      id: `${podId}-${index}`,
      gpuUtilPercent: util,
      memoryUtilPercent: memoryUtil,
    })),
    ports: ports.map((port) => ({
      ip: port.ip,
      isIpPublic: port.type === 'tcp' && port.public !== null,
      privatePort: port.private,
      publicPort: port.public,
      type: port.type,
    })),
  };
}

/** One data center is one machine, as far as its engine tells. */
function machineId({ dataCenterId }: Pod): string {
  return dataCenterId.toLowerCase();
}

function serializePrices({ prices: { secure, community, spot } }: GpuOffer) {
  return { securePrice: secure, communityPrice: community, secureSpotPrice: spot, communitySpotPrice: spot };
}

function serializeMachine(
  found: Pod,
  shownGpu: Static<typeof podGpu> | undefined,
): Static<typeof podMachine> {
  return {
    dataCenterId: found.dataCenterId,
    location: found.dataCenterId,
    gpuTypeId: found.gpuTypeId ?? 'unknown',
    ...(shownGpu !== undefined && {
      gpuType: shownGpu,
      gpuDisplayName: shownGpu.displayName ?? shownGpu.id,
      currentPricePerGpu: found.gpuCount === 0 ? 0 : found.costPerHour / found.gpuCount,
    }),
    cpuCount: Math.ceil(found.vcpuCount),
    costPerHr: found.costPerHour,
    secureCloud: found.cloud === 'SECURE',
    supportPublicIp: true,
  };
}
