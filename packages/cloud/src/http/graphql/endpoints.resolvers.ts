import type { Caller } from '../../domain/caller.ts';
import { cpuInstanceId } from '../../domain/catalog/cpu-selection.ts';
import { eligibleAmong, formatGpuIds } from '../../domain/catalog/gpu-selection.ts';
import { locationsOf } from '../../domain/endpoints/endpoint-locations.ts';
import { wholeScalerValue } from '../../domain/endpoints/scaler-value.ts';
import type { WorkerView } from '../../resources/endpoints/endpoint-workers.ts';
import type { AllServices, ResourceServices } from '../../resources/resources.ts';
import { type Endpoint, type NetworkVolume, FLASHBOOT_MODES } from '../../domain/records.ts';
import { isoTime } from '../../support/clock.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import type { RequestContext } from './graphql-request-context.ts';
import type { SaveEndpointInput } from './endpoints.graphql.input.ts';
import {
  WORD_BY_ENDPOINT_TYPE,
  updateEndpointInput,
  createEndpointInput,
} from './endpoints.graphql.input.ts';
import { requireFields } from './graphql-input-checks.ts';
import { serializeNetworkVolume } from './network-volumes.resolvers.ts';
import type { GraphqlModule } from './graphql-module.ts';
import { serializeTemplate } from './templates.resolvers.ts';

const sdl = `
  enum ComputeType { CPU GPU }
  enum FlashBootType { ${FLASHBOOT_MODES.join(' ')} }
  "A queue of jobs, or load balancing"
  enum EndpointType { QB LB }

  "A serverless address"
  type Endpoint {
    id: String
    name: String
    aiKey: String
    userId: String
    type: EndpointType
    "Counts the changes that need new containers"
    version: Int
    createdAt: DateTime
    templateId: String
    template: PodTemplate
    computeType: ComputeType
    "GPU pools, with a minus before each GPU type that they are taken without"
    gpuIds: String
    "Berth only: those of its GPU types that are only names here, without hardware"
    virtualGpuTypeIds: [String]
    gpuCount: Int
    "CPU machines such as cpu3g-4-16"
    instanceIds: [String]
    "Such as 12.8,12.6"
    allowedCudaVersions: String
    minCudaVersion: String
    "Data centers and countries"
    locations: String
    compliance: [Compliance]
    networkVolumeId: String
    networkVolume: NetworkVolume
    networkVolumeIds: [EndpointNetworkVolume]
    env: [EnvironmentVariable]
    "Seconds"
    idleTimeout: Int
    "0 is no limit"
    executionTimeoutMs: Int
    scalerType: String
    scalerValue: Int
    workersMin: Int
    workersMax: Int
    workersStandby: Int
    workersPFBTarget: Int
    flashBootType: FlashBootType
    flashEnvironmentId: String
    activeBuildid: String
    idePodId: String
    hubReleaseId: String
    modelReferences: [String]
    "Its workers"
    pods: [Pod]
  }
  enum PodStatus { RUNNING }
  "A rented machine: here a worker of an endpoint"
  type Pod {
    id: String
    name: String
    imageName: String
    desiredStatus: PodStatus
    "What it does: RUNNING, IDLE, INITIALIZING, THROTTLED or UNHEALTHY"
    lastStatusChange: String
    lastStartedAt: DateTime
    createdAt: DateTime
    uptimeSeconds: Int
    gpuCount: Int
    "The version of the endpoint that it was made from"
    slsVersion: Int
    consumerUserId: String
    endpointId: String
    aiApiId: String
    machine: PodMachineInfo
  }
  type PodMachineInfo { dataCenterId: String gpuTypeId: String }
  type EndpointNetworkVolume { networkVolumeId: String dataCenterId: String }
  input NetworkVolumeIdsInput { networkVolumeId: String dataCenterId: String }
  "A template that belongs to its endpoint alone"
  input EndpointTemplateInput {
    name: String
    imageName: String
    dockerArgs: String
    containerArgs: String
    env: [EnvironmentVariableInput]
    ports: String
    containerDiskInGb: Int
    containerRegistryAuthId: String
    volumeInGb: Int
    volumeMountPath: String
    readme: String
    advancedStart: Boolean
    startScript: String
    startSsh: Boolean
    startJupyter: Boolean
    isServerless: Boolean
    config: JSON
  }
  "With an id, the given fields change; without one, an endpoint is made from templateId, template or hubReleaseId"
  input EndpointInput {
    id: String
    name: String
    templateId: String
    template: EndpointTemplateInput
    hubReleaseId: String
    gpuIds: String
    gpuCount: Int
    instanceIds: [String]
    type: EndpointType
    computeType: ComputeType
    allowedCudaVersions: String
    minCudaVersion: String
    locations: String
    compliance: [Compliance]
    networkVolumeId: String
    networkVolumeIds: [NetworkVolumeIdsInput]
    env: [EnvironmentVariableInput]
    idleTimeout: Int
    executionTimeoutMs: Int
    "QUEUE_DELAY or REQUEST_COUNT"
    scalerType: String
    scalerValue: Int
    workersMin: Int
    workersMax: Int
    workersStandby: Int
    flashBootType: FlashBootType
    modelReferences: [String]
    "It becomes one of the endpoints of this environment"
    flashEnvironmentId: String
    "Ignored from here on: read-only fields, which clients send that write back all that they read"
    workersPFBTarget: Int
    aiKey: String
    activeBuildid: String
    idePodId: String
    createdAt: DateTime
    userId: String
    version: Int
    hubRelease: String
    repo: String
  }
  input UpdateEndpointTemplateInput { endpointId: String templateId: String }

  extend type Mutation {
    saveEndpoint(input: EndpointInput): Endpoint
    updateEndpointTemplate(input: UpdateEndpointTemplateInput): Endpoint
    deleteEndpoint(id: String): Void
  }
  extend type User {
    endpoints: [Endpoint]
    "Null where there is none"
    endpoint(id: String): Endpoint
  }
`;

/** Where nothing runs workers, there are none to show. */
export function endpointModule({
  endpoints,
  volumes,
  catalog,
  hub,
  flash,
  workers,
}: ResourceServices & Partial<Pick<AllServices, 'workers'>>): GraphqlModule {
  const save = async ({ input: given = {} }: { input?: SaveEndpointInput }, caller: Caller) => {
    const dataCenters = catalog.dataCenters();
    const input = await fromHub(given);
    // Looked for first: what names an environment that is not there is not made at all.
    const environment =
      input.flashEnvironmentId === undefined
        ? undefined
        : await flash.environment(caller, input.flashEnvironmentId);
    const saved = await (input.id === undefined
      ? endpoints.create(caller, createEndpointInput(input, dataCenters))
      : endpoints.update(caller, input.id, updateEndpointInput(input, dataCenters)));
    if (environment !== undefined) await flash.addEndpoint(caller, environment.id, saved.id);
    return serializeEndpoint(saved);
  };
  /** A release of the hub is a template that need not be written; what is written beside it wins. */
  const fromHub = async (input: SaveEndpointInput): Promise<SaveEndpointInput> => {
    if (input.hubReleaseId === undefined || input.id !== undefined) return input;
    const release = await hub.release(input.hubReleaseId);
    if (release === undefined) throw notFound('hub release', input.hubReleaseId);
    return { ...input, template: { imageName: release.image, ...input.template } };
  };
  const volumesOf = async ({ record }: EndpointObject, context: RequestContext): Promise<NetworkVolume[]> => {
    if (record.networkVolumeIds.length === 0) return [];
    const all = await context.memoize('network volumes', () => volumes.list(context.caller));
    return record.networkVolumeIds.flatMap((id) => all.filter((volume) => volume.id === id));
  };
  return {
    sdl,
    authenticatedResolvers: {
      Mutation: {
        saveEndpoint: save,
        updateEndpointTemplate: async (
          { input = {} }: { input?: { endpointId?: string; templateId?: string } },
          caller,
        ) => {
          const { endpointId, templateId } = requireFields(input, 'endpointId', 'templateId');
          return serializeEndpoint(
            await endpoints.update(caller, endpointId, {
              template: { as: 'link', id: templateId },
              settings: () => ({}),
            }),
          );
        },
        deleteEndpoint: async (args: { id?: string }, caller) => {
          await endpoints.remove(caller, requireFields(args, 'id').id);
          return null;
        },
      },
      User: {
        endpoints: async (_args: unknown, caller) => (await endpoints.list(caller)).map(serializeEndpoint),
        endpoint: async (args: { id?: string }, caller) => {
          try {
            return serializeEndpoint(await endpoints.get(caller, requireFields(args, 'id').id));
          } catch (error) {
            if (error instanceof BerthError && error.code === 'not-found') return null;
            throw error;
          }
        },
      },
    },
    fieldResolvers: {
      PodTemplate: {
        boundEndpointId: async ({ id }: { id: string }, _args: unknown, context) =>
          (await context.memoize('bound templates', () => endpoints.boundTemplates(context.caller))).get(
            id,
          ) ?? null,
      },
      Endpoint: {
        template: async ({ record }: EndpointObject, _args: unknown, context) =>
          serializeTemplate(await endpoints.templateOf(context.caller, record)),
        networkVolume: async (shown: EndpointObject, _args: unknown, context) => {
          const [first] = await volumesOf(shown, context);
          return first === undefined ? null : serializeNetworkVolume(first, catalog);
        },
        virtualGpuTypeIds: async ({ record }: EndpointObject) =>
          record.compute === 'GPU' ? eligibleAmong(record, await catalog.virtualGpuTypes()) : [],
        pods: ({ record }: EndpointObject) =>
          (workers?.viewsOf(record) ?? []).map((view) => serializeWorker(view, record)),
        networkVolumeIds: async (shown: EndpointObject, _args: unknown, context) =>
          (await volumesOf(shown, context)).map(({ id, dataCenterId }) => ({
            networkVolumeId: id,
            dataCenterId,
          })),
      },
    },
  };
}

type EndpointObject = ReturnType<typeof serializeEndpoint>;

export function serializeEndpoint(found: Endpoint) {
  return {
    /** For the fields that need more than is here. */
    record: found,
    id: found.id,
    name: found.name,
    aiKey: null,
    userId: found.accountId,
    type: WORD_BY_ENDPOINT_TYPE[found.type],
    version: found.version,
    createdAt: isoTime(found.createdAt),
    templateId: found.templateId,
    computeType: found.compute,
    gpuIds: formatGpuIds(found),
    gpuCount: found.gpuCount,
    instanceIds: found.cpuFlavors.map(cpuInstanceId),
    allowedCudaVersions: found.allowedCudaVersions.join(','),
    minCudaVersion: found.minCudaVersion,
    locations: locationsOf(found),
    compliance: found.compliance,
    networkVolumeId: found.networkVolumeIds[0] ?? null,
    env: Object.entries(found.env).map(([key, value]) => ({ key, value })),
    idleTimeout: found.idleTimeout,
    executionTimeoutMs: found.executionTimeout,
    scalerType: found.scalerType,
    scalerValue: wholeScalerValue(found),
    workersMin: found.workersMin,
    workersMax: found.workersMax,
    workersStandby: found.workersStandby,
    workersPFBTarget: 0,
    flashBootType: found.flashboot,
    idePodId: null,
    modelReferences: found.modelReferences,
  };
}

function serializeWorker({ worker, status, uptimeSeconds }: WorkerView, { name }: Endpoint) {
  const startedAt = isoTime(worker.createdAt);
  return {
    id: worker.id,
    name,
    imageName: worker.image,
    desiredStatus: 'RUNNING',
    lastStatusChange: status,
    lastStartedAt: startedAt,
    createdAt: startedAt,
    uptimeSeconds,
    gpuCount: worker.gpuCount,
    slsVersion: worker.version,
    consumerUserId: worker.accountId,
    endpointId: worker.endpointId,
    aiApiId: worker.endpointId,
    machine: { dataCenterId: worker.dataCenterId, gpuTypeId: worker.gpuTypeId },
  };
}
