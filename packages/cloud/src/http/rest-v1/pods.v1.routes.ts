import type { Caller } from '../../domain/caller.ts';
import type { GpuOffer } from '../../resources/catalog/gpu-offer.ts';
import { CPU_FLAVORS } from '../../domain/catalog/cpu-flavors.ts';
import { DEFAULT_VCPU_COUNT } from '../../domain/catalog/cpu-selection.ts';
import { ANY_HARDWARE, V1_POD_DEFAULTS } from '../../domain/pods/pod-input.ts';
import type { NewPod, PodInput, PodSettings } from '../../domain/pods/pod-input.ts';
import type { HardwareRequest } from '../../domain/placement/pod-placement.ts';
import type { PodRuntime } from '../../resources/pods/pod-runtime.ts';
import {
  desiredStatus,
  holdsHardware,
  lastStatusChange,
  DESIRED_STATUSES,
} from '../../domain/pods/pod-states.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { formatArgs, parseArgs } from '../../domain/templates/container-command.ts';
import { splitPorts } from '../../domain/templates/container-ports.ts';
import { type NetworkVolume, COMPUTE_TYPES } from '../../domain/records.ts';
import { isoTime } from '../../support/clock.ts';
import { ruleError } from '../../support/errors.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import {
  anyValue,
  boolean,
  integer,
  list,
  map,
  named,
  nullable,
  number,
  object,
  stringEnum,
  text,
} from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { runpodctlPodFields, runpodctlPodCreateFields } from './runpodctl-fields.v1.schema.ts';
import { networkVolume as volumeSchema } from './network-volumes.v1.routes.ts';
import { serializeTemplate, template } from './templates.v1.routes.ts';
import { type Pod, CLOUD_TYPES } from '../../domain/pods/pod-record.ts';
import {
  MAX_NAME_LENGTH,
  MAX_IMAGE_REFERENCE_LENGTH,
  DISK_GB,
  GPU_COUNT,
  MIN_VCPU_COUNT,
} from '../../domain/limits.ts';

const prices = {
  securePrice: number(),
  communityPrice: number(),
  secureSpotPrice: number(),
  communitySpotPrice: number(),
};
const gpu = object({ id: text(), count: integer() }, { displayName: text(), ...prices });
const machine = named(
  'Machine',
  object(
    {},
    {
      dataCenterId: text(),
      location: text(),
      gpuTypeId: text(),
      gpuDisplayName: text(),
      gpuType: gpu,
      cpuCount: integer(),
      costPerHr: number(),
      currentPricePerGpu: number(),
      secureCloud: boolean(),
      supportPublicIp: boolean(),
    },
  ),
);

const runtime = named(
  'PodRuntime',
  object({
    uptimeInSeconds: integer(),
    container: object({ cpuPercent: integer(), memoryPercent: integer() }),
    gpus: list(object({ id: text(), gpuUtilPercent: integer(), memoryUtilPercent: integer() })),
    ports: list(
      object({
        ip: nullable(text()),
        isIpPublic: boolean(),
        privatePort: integer(),
        publicPort: nullable(integer()),
        type: text(),
      }),
    ),
  }),
);

const pod = named(
  'Pod',
  object(
    {
      id: text(),
      name: text(),
      desiredStatus: stringEnum(DESIRED_STATUSES, { description: 'What is wanted of it' }),
      lastStatusChange: text({ description: 'The last thing that happened to it' }),
      image: text(),
      ...runpodctlPodFields,
      env: map(text()),
      ports: list(text()),
      dockerEntrypoint: list(text()),
      dockerStartCmd: list(text()),
      containerDiskInGb: integer(),
      containerRegistryAuthId: nullable(text()),
      volumeInGb: integer(),
      volumeMountPath: text(),
      volumeEncrypted: boolean(),
      gpuCount: integer(),
      vcpuCount: number(),
      memoryInGb: number(),
      machineId: nullable(text()),
      machine,
      publicIp: nullable(text({ description: 'Null until a TCP port is reached' })),
      portMappings: nullable(
        map(integer(), { description: 'TCP ports, and where each is reached from outside' }),
      ),
      costPerHr: number({ description: 'US dollars while it runs' }),
      adjustedCostPerHr: number(),
      interruptible: boolean(),
      locked: boolean(),
      globalNetworking: boolean(),
      consumerUserId: text({ description: 'The account that owns it' }),
      templateId: nullable(text()),
      createdAt: text({ format: 'date-time' }),
      lastStartedAt: nullable(text({ format: 'date-time' })),
      networkVolumeId: nullable(text()),
      uptimeSeconds: integer({ description: 'Since it was started; 0 while it does not run' }),
      runtime: nullable(runtime),
    },
    {
      gpu,
      cpuFlavorId: text(),
      networkVolume: volumeSchema,
      template,
      savingsPlans: list(anyValue()),
      endpointId: text({ description: 'Of a worker' }),
      aiApiId: text({ description: 'The same as endpointId' }),
      slsVersion: integer({ description: 'The version of the endpoint that a worker was made from' }),
    },
    { description: 'A rented machine' },
  ),
);

const disk = nullable(integer({ ...DISK_GB, description: 'Size in GB' }));
const changeable = {
  name: text({ maxLength: MAX_NAME_LENGTH, description: 'Need not be unique' }),
  imageName: text({ minLength: 1, maxLength: MAX_IMAGE_REFERENCE_LENGTH }),
  containerDiskInGb: disk,
  containerRegistryAuthId: nullable(text({ description: 'Saved registry credentials; empty removes them' })),
  dockerEntrypoint: list(text()),
  dockerStartCmd: list(text()),
  env: map(text()),
  globalNetworking: boolean({ description: 'Takes effect at the next start' }),
  locked: boolean({ description: 'A locked pod cannot be stopped, reset or terminated' }),
  ports: list(text({ description: 'For example 8888/http' })),
  volumeInGb: disk,
  volumeMountPath: text({ minLength: 1 }),
};
const priority = (what: string) =>
  stringEnum(['availability', 'custom'], {
    default: 'availability',
    description: `custom: ${what} in the given order`,
  });
const createInput = named(
  'PodCreateInput',
  object(
    {},
    {
      ...changeable,
      templateId: text({ minLength: 1 }),
      computeType: stringEnum(COMPUTE_TYPES, {
        default: 'GPU',
        description: 'Fields of the other kind are ignored',
      }),
      cloudType: stringEnum(CLOUD_TYPES, { default: 'SECURE' }),
      gpuTypeIds: list(text({ minLength: 1 }), { description: 'Empty or left out: any' }),
      gpuTypePriority: priority('GPU types'),
      gpuCount: integer({ minimum: GPU_COUNT.minimum, default: 1 }),
      minVCPUPerGPU: integer({ minimum: 0 }),
      minRAMPerGPU: integer({ minimum: 0 }),
      allowedCudaVersions: list(text(), { description: 'Such as 12.8' }),
      cpuFlavorIds: list(text({ minLength: 1 }), { description: 'Empty or left out: any' }),
      cpuFlavorPriority: priority('CPU flavours'),
      vcpuCount: integer({ minimum: MIN_VCPU_COUNT, default: DEFAULT_VCPU_COUNT }),
      dataCenterIds: list(text({ minLength: 1 }), { description: 'Empty or left out: anywhere' }),
      dataCenterPriority: priority('data centers'),
      countryCodes: list(text({ minLength: 2 })),
      networkVolumeId: text({ description: "Takes the place of the pod's own volume" }),
      ...runpodctlPodCreateFields,
      interruptible: boolean({ description: 'Cheaper, and may be stopped at any time' }),
      supportPublicIp: nullable(boolean()),
      minDiskBandwidthMBps: number({ description: 'Machines are not told apart by it here' }),
      minDownloadMbps: number({ description: 'Machines are not told apart by it here' }),
      minUploadMbps: number({ description: 'Machines are not told apart by it here' }),
    },
  ),
);
const updateInput = named('PodUpdateInput', object({}, changeable));
type CreateBody = Static<typeof createInput>;
type UpdateBody = Static<typeof updateInput>;

const include = {
  includeMachine: boolean({ default: false, description: 'More about the machine' }),
  includeNetworkVolume: boolean({ default: false, description: 'Also the network volume' }),
  includeSavingsPlans: boolean({ default: false, description: 'Also savings plans; there are none here' }),
  includeTemplate: boolean({ default: false, description: 'Also the template, as long as you may see it' }),
  includeWorkers: boolean({ default: false, description: 'Also the workers of endpoints' }),
};
const filters = {
  computeType: stringEnum(COMPUTE_TYPES),
  cpuFlavorId: list(text()),
  dataCenterId: list(text()),
  desiredStatus: stringEnum(DESIRED_STATUSES),
  endpointId: text(),
  gpuTypeId: list(text()),
  id: text(),
  imageName: text(),
  name: text(),
  networkVolumeId: text(),
  templateId: text(),
};
const listQuery = object({}, { ...filters, ...include });
const oneQuery = object({}, include);
type Include = Static<typeof oneQuery>;
const byPodId = object({ podId: text({ minLength: 1 }) });

interface ListedPod {
  pod: Pod;
  endpointId?: string;
  version?: number;
}

export function podOperations({ pods, catalog, volumes, templates }: ResourceServices): Operation[] {
  const tag = 'Pods';

  const shown = async (
    caller: Caller,
    found: readonly ListedPod[],
    query: Include,
  ): Promise<Static<typeof pod>[]> => {
    const offers = found.length === 0 ? [] : await catalog.gpus();
    const mounted = query.includeNetworkVolume === true ? await volumes.list(caller) : [];
    return Promise.all(
      found.map(async (one) => {
        const { templateId } = one.pod;
        // A pod outlives its owner's view of a template that somebody else made.
        const template =
          query.includeTemplate === true && templateId !== null
            ? await templates.find(caller, templateId)
            : undefined;
        return {
          ...serializePod(one, await pods.runtime(one.pod), offers, mounted, query.includeMachine === true),
          ...(template !== undefined && { template: serializeTemplate(template) }),
          ...(query.includeSavingsPlans === true && { savingsPlans: [] }),
        };
      }),
    );
  };
  const showOne = async (caller: Caller, found: Pod, query: Include = {}): Promise<Static<typeof pod>> =>
    (await shown(caller, [{ pod: found }], query))[0] as Static<typeof pod>;

  const update = {
    tag,
    access: 'write' as const,
    params: byPodId,
    body: updateInput,
    status: 200 as const,
    response: pod,
    errorStatuses: [400, 404],
    handle: async ({
      caller,
      params,
      body,
    }: {
      caller: Caller;
      params: { podId: string };
      body: UpdateBody;
    }) => showOne(caller, await pods.update(caller, params.podId, updatePodInput(body))),
  };
  const action = (name: 'start' | 'stop' | 'reset' | 'restart', summary: string): Operation =>
    operation({
      id: `${name}Pod`,
      method: 'POST',
      path: `/pods/{podId}/${name}`,
      tag,
      summary,
      access: 'write',
      params: byPodId,
      podIdParam: 'podId',
      status: 200,
      response: pod,
      errorStatuses: [400, 404],
      handle: async ({ caller, params }) => showOne(caller, await pods[name](caller, params.podId)),
    });

  return [
    operation({
      id: 'createPod',
      method: 'POST',
      path: '/pods',
      tag,
      summary: 'Create a pod',
      access: 'write',
      body: createInput,
      status: 201,
      response: pod,
      errorStatuses: [400],
      handle: async ({ caller, body }) =>
        showOne(
          caller,
          await pods.create(
            caller,
            createPodInput(
              body,
              allowedDataCenterIds(
                catalog.dataCenters({
                  countryCodes: (body.countryCodes ?? []).map((code) => code.toUpperCase()),
                }),
                body,
              ),
            ),
          ),
        ),
    }),
    operation({
      id: 'listPods',
      method: 'GET',
      path: '/pods',
      tag,
      summary: 'List your pods',
      access: 'read',
      query: listQuery,
      status: 200,
      response: list(pod),
      errorStatuses: [400],
      handle: async ({ caller, query }) => {
        const own: ListedPod[] = (await pods.list(caller)).map((found) => ({ pod: found }));
        const workers: ListedPod[] =
          query.includeWorkers === true || query.endpointId !== undefined
            ? await pods.workers(caller, query.endpointId)
            : [];
        return shown(
          caller,
          [...own, ...workers].filter((found) => matches(found, query)),
          query,
        );
      },
    }),
    operation({
      id: 'getPod',
      method: 'GET',
      path: '/pods/{podId}',
      tag,
      summary: 'Get a pod',
      access: 'read',
      params: byPodId,
      podIdParam: 'podId',
      query: oneQuery,
      status: 200,
      response: pod,
      errorStatuses: [400, 404],
      handle: async ({ caller, params, query }) =>
        showOne(caller, await pods.get(caller, params.podId), query),
    }),
    operation({
      ...update,
      id: 'updatePod',
      method: 'PATCH',
      path: '/pods/{podId}',
      summary: 'Update a pod; more than its name and lock resets it',
    }),
    operation({
      ...update,
      id: 'updatePodByPost',
      method: 'POST',
      path: '/pods/{podId}/update',
      summary: 'Update a pod (the same as PATCH)',
    }),
    operation({
      id: 'deletePod',
      method: 'DELETE',
      path: '/pods/{podId}',
      tag,
      summary: 'Terminate a pod',
      access: 'write',
      params: byPodId,
      podIdParam: 'podId',
      status: 204,
      errorStatuses: [400, 404],
      handle: ({ caller, params }) => pods.terminate(caller, params.podId),
    }),
    action('start', 'Start a pod that was stopped'),
    action('stop', 'Stop a pod; its volume stays'),
    action('reset', 'Give a pod a fresh container; its volume stays'),
    action('restart', 'Restart a pod'),
  ];
}

/** The data centers that a body leaves: those it names, and of them those in its countries. */
function allowedDataCenterIds(
  inCountries: readonly { id: string }[],
  { dataCenterIds = [], countryCodes = [] }: CreateBody,
): string[] {
  if (countryCodes.length === 0) return dataCenterIds;
  const ids = inCountries
    .map(({ id }) => id)
    .filter((id) => dataCenterIds.length === 0 || dataCenterIds.includes(id));
  if (ids.length === 0)
    throw ruleError(
      `no data center here is in ${countryCodes.join(', ')}${dataCenterIds.length > 0 ? ` and among ${dataCenterIds.join(', ')}` : ''}`,
    );
  return ids;
}

function createPodInput(body: CreateBody, dataCenterIds: readonly string[]): NewPod {
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

function updatePodInput(body: UpdateBody): PodInput {
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

/** Only what the body says; null is none. The environment apart, since it may build on the template's. */
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

/** Every filter that is given must hold. */
function matches({ pod: found, endpointId }: ListedPod, query: Static<typeof listQuery>): boolean {
  const among = (wanted: readonly string[] | undefined, value: string | null): boolean =>
    wanted === undefined || wanted.length === 0 || (value !== null && wanted.includes(value));
  const is = (wanted: string | undefined, value: string | null | undefined): boolean =>
    wanted === undefined || wanted === value;
  return (
    is(query.computeType, found.compute) &&
    is(query.desiredStatus, desiredStatus(found)) &&
    is(query.id, found.id) &&
    is(query.imageName, found.image) &&
    is(query.name, found.name) &&
    is(query.networkVolumeId, found.networkVolumeId) &&
    is(query.templateId, found.templateId) &&
    is(query.endpointId, endpointId) &&
    among(query.cpuFlavorId, found.cpuFlavorId) &&
    among(query.dataCenterId, found.dataCenterId) &&
    among(query.gpuTypeId, found.gpuTypeId)
  );
}

function serializePod(
  { pod: found, endpointId, version }: ListedPod,
  now: PodRuntime | null,
  offers: readonly GpuOffer[],
  volumes: readonly NetworkVolume[],
  wholeMachine: boolean,
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
    containerRegistryAuthId: found.registryId,
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
    templateId: found.templateId,
    createdAt: isoTime(found.createdAt),
    lastStartedAt: found.startedAt === null ? null : isoTime(found.startedAt),
    networkVolumeId: found.networkVolumeId,
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
): Static<typeof runtime> {
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

function serializeMachine(found: Pod, shownGpu: Static<typeof gpu> | undefined): Static<typeof machine> {
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
