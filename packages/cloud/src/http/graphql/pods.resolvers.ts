import type { Caller } from '../../domain/caller.ts';
import { findGpuType } from '../../domain/catalog/gpu-types.ts';
import { desiredStatus, holdsHardware, lastStatusChange } from '../../domain/pods/pod-states.ts';
import type { PodRuntime } from '../../resources/pods/pod-runtime.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { isoTime, isoTimeOrNull } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { RequestContext } from './graphql-request-context.ts';
import { podToTerminateNotFound } from './graphql-client-errors.ts';
import { requireFields } from './graphql-input-checks.ts';
import { serializeNetworkVolume } from './network-volumes.resolvers.ts';
import type { GraphqlModule } from './graphql-module.ts';
import { updatePodInput, createPodInput } from './pods.graphql.input.ts';
import type { DeployPodInput, EditPodInput } from './pods.graphql.input.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';
import { podSdl } from './pods.graphql.schema.ts';

interface PodIdInput {
  podId?: string;
}

export function podModule({ pods, volumes, catalog }: ResourceServices): GraphqlModule {
  const deploy =
    (interruptible: boolean, computeType?: 'CPU') =>
    async ({ input = {} }: { input?: DeployPodInput }, caller: Caller) => {
      const order = createPodInput(
        { ...input, ...(computeType !== undefined && { computeType }) },
        interruptible,
        {
          dataCenters: catalog.dataCenters(),
          jupyterPassword: ({ id }) => pods.jupyterPassword(id),
        },
      );
      return serializePod(await pods.create(caller, order));
    };

  return {
    sdl: podSdl,
    authenticatedResolvers: {
      Query: {
        pod: async ({ input = {} }: { input?: PodIdInput }, caller) => {
          try {
            return serializePod(await pods.get(caller, requireFields(input, 'podId').podId));
          } catch (error) {
            if (error instanceof BerthError && error.code === 'not-found') return null;
            throw error;
          }
        },
      },
      User: { pods: async (_args: unknown, caller) => (await pods.list(caller)).map(serializePod) },
      Mutation: {
        podFindAndDeployOnDemand: deploy(false),
        podRentInterruptable: deploy(true),
        deployCpuPod: deploy(false, 'CPU'),
        podStop: async ({ input = {} }: { input?: PodIdInput }, caller) =>
          serializePod(await pods.stop(caller, requireFields(input, 'podId').podId)),
        podResume: async ({ input = {} }: { input?: PodIdInput & { gpuCount?: number } }, caller) => {
          const { podId, gpuCount } = requireFields(input, 'podId');
          return serializePod(await pods.start(caller, podId, gpuCount === undefined ? {} : { gpuCount }));
        },
        podBidResume: async (
          { input = {} }: { input?: PodIdInput & { bidPerGpu?: number; gpuCount?: number } },
          caller,
        ) => {
          const { podId, bidPerGpu, gpuCount } = requireFields(input, 'podId', 'bidPerGpu');
          return serializePod(
            await pods.start(caller, podId, { bidPerGpu, ...(gpuCount !== undefined && { gpuCount }) }),
          );
        },
        podTerminate: async ({ input = {} }: { input?: PodIdInput }, caller) => {
          try {
            await pods.terminate(caller, requireFields(input, 'podId').podId);
          } catch (error) {
            throw error instanceof BerthError && error.code === 'not-found'
              ? podToTerminateNotFound()
              : error;
          }
          return null;
        },
        podEditJob: async ({ input = {} }: { input?: EditPodInput }, caller) =>
          serializePod(await pods.update(caller, requireFields(input, 'podId').podId, updatePodInput(input))),
      },
    },
    fieldResolvers: {
      Pod: {
        // A worker is shown here as well, and has none of this.
        runtime: async ({ record }: Partial<PodObject>) =>
          record === undefined ? null : serializeRuntime(record, await pods.runtime(record)),
        latestTelemetry: async ({ record }: Partial<PodObject>) => {
          const runtime = record === undefined ? null : await pods.runtime(record);
          return record === undefined || runtime === null ? null : serializeTelemetry(record, runtime);
        },
        networkVolume: async ({ record }: Partial<PodObject>, _args: unknown, context: RequestContext) => {
          if (record === undefined || record.networkVolumeId === null) return null;
          const found = (await context.memoize('network volumes', () => volumes.list(context.caller))).find(
            ({ id }) => id === record.networkVolumeId,
          );
          return found === undefined ? null : serializeNetworkVolume(found, catalog);
        },
      },
    },
  };
}

type PodObject = ReturnType<typeof serializePod>;

function serializeTelemetry({ id, startedAt }: Pod, runtime: PodRuntime) {
  const gpus = runtime.gpus.map(({ util, memoryUtil }, index) => ({
    id: `${id}-${index}`,
    percentUtilization: util,
    memoryUtilization: memoryUtil,
  }));
  const average = (of: 'percentUtilization' | 'memoryUtilization'): number =>
    gpus.reduce((sum, gpu) => sum + gpu[of], 0) / gpus.length;
  return {
    state: 'running',
    time: isoTime(Date.now()),
    cpuUtilization: runtime.cpu / 100,
    memoryUtilization: runtime.memory / 100,
    averageGpuMetrics:
      gpus.length === 0
        ? null
        : {
            percentUtilization: average('percentUtilization'),
            memoryUtilization: average('memoryUtilization'),
          },
    individualGpuMetrics: gpus,
    lastStateTransitionTimestamp: startedAt === null ? null : startedAt / 1000,
  };
}

function serializeRuntime({ id }: Pod, runtime: PodRuntime | null) {
  if (runtime === null) return null;
  return {
    uptimeInSeconds: runtime.uptime,
    // Clients look for an entry that is not public beside those that are: an HTTP port is reached through the
    // gateway.
    ports: runtime.ports
      .filter((port) => port.type === 'http' || port.public !== null)
      .map((port) => ({
        ip: port.ip ?? '127.0.0.1',
        isIpPublic: port.type === 'tcp',
        privatePort: port.private,
        publicPort: port.public ?? port.private,
        type: port.type,
      })),
    gpus: runtime.gpus.map(({ util, memoryUtil }, index) => ({
      id: `${id}-${index}`,
      gpuUtilPercent: util,
      memoryUtilPercent: memoryUtil,
    })),
    container: { cpuPercent: runtime.cpu, memoryPercent: runtime.memory },
  };
}

export function serializePod(found: Pod) {
  const machineId = found.dataCenterId.toLowerCase();
  return {
    /** For the fields that need more than is here. */
    record: found,
    id: found.id,
    name: found.name,
    imageName: found.image,
    desiredStatus: desiredStatus(found),
    podType: found.interruptible ? 'INTERRUPTABLE' : 'RESERVED',
    lastStatusChange: lastStatusChange(found),
    lastStartedAt: isoTimeOrNull(found.startedAt),
    createdAt: isoTime(found.createdAt),
    uptimeSeconds:
      found.status === 'RUNNING' && found.startedAt !== null
        ? Math.max(0, Math.floor((Date.now() - found.startedAt) / 1000))
        : 0,
    costPerHr: found.costPerHour,
    adjustedCostPerHr: holdsHardware(found) ? found.costPerHour : 0,
    costMultiplier: 1,
    lowestBidPriceToResume: found.bidPerGpu,
    gpuCount: found.gpuCount,
    gpus: Array.from({ length: found.gpuCount }, (_, index) => ({
      id: `${found.id}-${index}`,
      podId: found.id,
    })),
    vcpuCount: found.vcpuCount,
    memoryInGb: found.memoryInGb,
    containerDiskInGb: found.containerDisk,
    volumeInGb: found.volumeSize,
    volumeMountPath: found.volumePath,
    volumeEncrypted: false,
    dockerArgs: found.args,
    dockerId: found.handle === null ? null : found.id,
    env: Object.entries(found.env).map(([key, value]) => `${key}=${value}`),
    ports: found.ports.join(','),
    locked: found.locked,
    version: found.generation,
    machineId,
    machineType: found.compute,
    machine: {
      id: machineId,
      podHostId: found.id,
      gpuTypeId: found.gpuTypeId ?? 'unknown',
      gpuDisplayName:
        found.gpuTypeId === null ? 'unknown' : (findGpuType(found.gpuTypeId)?.name ?? found.gpuTypeId),
      location: found.dataCenterId,
      dataCenterId: found.dataCenterId,
      costPerHr: found.costPerHour,
      currentPricePerGpu: found.gpuCount === 0 ? 0 : found.costPerHour / found.gpuCount,
      secureCloud: found.cloud === 'SECURE',
      supportPublicIp: true,
      listed: true,
      machineType: found.compute,
      cpuCount: Math.ceil(found.vcpuCount),
    },
    templateId: found.templateId,
    containerRegistryAuthId: found.registryId,
    consumerUserId: found.accountId,
    cpuFlavorId: found.cpuFlavorId,
    networkVolumeId: found.networkVolumeId,
    clusterId: found.clusterId,
    clusterIp: found.membership?.address ?? null,
    clusterIdx: found.membership?.rank ?? null,
    clusterRole: found.membership?.role ?? null,
    stopAfter: isoTimeOrNull(found.stopAfter),
    terminateAfter: isoTimeOrNull(found.terminateAfter),
  };
}
