import { DEFAULT_VCPU_COUNT } from '../../domain/catalog/cpu-selection.ts';
import {
  DISK_GB,
  GPU_COUNT,
  MAX_IMAGE_REFERENCE_LENGTH,
  MAX_NAME_LENGTH,
  MIN_VCPU_COUNT,
} from '../../domain/limits.ts';
import { CLOUD_TYPES } from '../../domain/pods/pod-record.ts';
import { DESIRED_STATUSES } from '../../domain/pods/pod-states.ts';
import { COMPUTE_TYPES } from '../../domain/records.ts';
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
import { networkVolume } from './network-volumes.v1.routes.ts';
import { runpodctlPodCreateFields, runpodctlPodFields } from './runpodctl-fields.v1.schema.ts';
import { template } from './templates.v1.routes.ts';

const prices = {
  securePrice: number(),
  communityPrice: number(),
  secureSpotPrice: number(),
  communitySpotPrice: number(),
};
export const virtualGpu = boolean({
  description: 'Berth only: true where the GPU is only a name, without hardware behind it; else left out',
});
export const podGpu = object(
  { id: text(), count: integer() },
  { displayName: text(), ...prices, virtual: virtualGpu },
);
export const podMachine = named(
  'Machine',
  object(
    {},
    {
      dataCenterId: text(),
      location: text(),
      gpuTypeId: text(),
      gpuDisplayName: text(),
      gpuType: podGpu,
      cpuCount: integer(),
      costPerHr: number(),
      currentPricePerGpu: number(),
      secureCloud: boolean(),
      supportPublicIp: boolean(),
    },
  ),
);

export const podRuntime = named(
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

export const pod = named(
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
      volumeInGb: integer(),
      volumeMountPath: text(),
      volumeEncrypted: boolean(),
      gpuCount: integer(),
      vcpuCount: number(),
      memoryInGb: number(),
      machineId: nullable(text()),
      machine: podMachine,
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
      createdAt: text({ format: 'date-time' }),
      uptimeSeconds: integer({ description: 'Since it was started; 0 while it does not run' }),
      runtime: nullable(podRuntime),
    },
    {
      containerRegistryAuthId: text(),
      templateId: text(),
      lastStartedAt: text({ format: 'date-time' }),
      networkVolumeId: text(),
      gpu: podGpu,
      cpuFlavorId: text(),
      networkVolume,
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
export const createPod = named(
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
      minDiskBandwidthMBps: number({
        description: 'Accepted and ignored: Berth does not distinguish machines by it',
      }),
      minDownloadMbps: number({
        description: 'Accepted and ignored: Berth does not distinguish machines by it',
      }),
      minUploadMbps: number({
        description: 'Accepted and ignored: Berth does not distinguish machines by it',
      }),
    },
  ),
);
export const updatePod = named('PodUpdateInput', object({}, changeable));

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
export const listPodsQuery = object({}, { ...filters, ...include });
export const getPodQuery = object({}, include);
export const byPodId = object({ podId: text({ minLength: 1 }) });
