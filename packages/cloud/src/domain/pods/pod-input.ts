import type { Template } from '../records.ts';
import { containerFromTemplate } from '../templates/template-inheritance.ts';
import type { HardwareRequest } from '../placement/pod-placement.ts';
import type { Pod } from './pod-record.ts';
import { TEMPLATE_DEFAULTS, V1_TEMPLATE_DEFAULTS } from '../templates/template-defaults.ts';

/** What a person may set, apart from what refers to other things of the account and from hardware. */
export type PodSettings = Pick<
  Pod,
  | 'name'
  | 'image'
  | 'args'
  | 'containerDisk'
  | 'ports'
  | 'env'
  | 'cloud'
  | 'interruptible'
  | 'bidPerGpu'
  | 'locked'
  | 'globalNetworking'
  | 'startSsh'
  | 'startJupyter'
  | 'volumeSize'
  | 'volumePath'
  | 'stopAfter'
  | 'terminateAfter'
>;

/**
 * A template is taken once, as it is now. The older interfaces remember which one it was, and call an unknown
 * one a mistake in the body.
 */
export interface PodTemplateUse {
  id: string;
  isRecorded: boolean;
}

/** A change of a pod. What is left out stays as it is. */
export interface PodInput {
  template?: PodTemplateUse;
  registryId?: string | null;
  /** `base` is the pod so far, with the template already applied. May be asked more than once. */
  settings(base: Pod): Partial<PodSettings>;
}

export interface NewPod extends PodInput {
  hardware: HardwareRequest;
  networkVolumeId?: string;
  /** What the interface fills in where neither the template nor the body says anything. */
  defaults?: Partial<PodSettings>;
}

/** The defaults of a pod. Where an interface differs, it has defaults of its own. */
export const POD_DEFAULTS: Omit<Pod, 'id' | 'accountId' | 'createdAt' | 'updatedAt' | 'statusChangedAt'> = {
  name: '',
  compute: 'GPU',
  cloud: 'SECURE',
  image: '',
  args: '',
  containerDisk: 20,
  ports: [],
  env: {},
  registryId: null,
  interruptible: false,
  bidPerGpu: null,
  locked: false,
  globalNetworking: false,
  startSsh: false,
  startJupyter: false,
  templateId: null,
  volumeSize: 0,
  volumePath: '/workspace',
  networkVolumeId: null,
  clusterId: null,
  membership: null,
  dataCenterId: '',
  gpuTypeId: null,
  gpuCount: 0,
  cpuFlavorId: null,
  vcpuCount: 0,
  memoryInGb: 0,
  cudaVersion: null,
  costPerHour: 0,
  stopAfter: null,
  terminateAfter: null,
  wanted: 'running',
  generation: 1,
  status: 'PROVISIONING',
  statusDetail: null,
  settled: false,
  handle: null,
  instanceGeneration: 0,
  startedAt: null,
  endedAt: null,
  exitCode: null,
};

/** The name that REST v1 and GraphQL give a pod without one. */
export const DEFAULT_POD_NAME = 'my pod';

/** What REST v1 fills in. */
export const V1_POD_DEFAULTS = {
  name: DEFAULT_POD_NAME,
  ports: V1_TEMPLATE_DEFAULTS.ports,
  containerDisk: TEMPLATE_DEFAULTS.containerDisk,
  volumeSize: V1_TEMPLATE_DEFAULTS.volumeSize,
};

/** Any GPU, anywhere. */
export const ANY_HARDWARE: HardwareRequest = {
  compute: 'GPU',
  gpuTypeIds: [],
  gpuOrder: 'availability',
  gpuCount: 1,
  cpuFlavors: [],
  minVcpuPerGpu: 0,
  minMemoryPerGpu: 0,
  cuda: {},
  dataCenterIds: [],
  dataCenterOrder: 'availability',
};

/** What a new pod has from a template. A CPU pod gets no volume disk from one. */
export function podFieldsFromTemplate(
  template: Template,
  accountId: string,
  compute: Pod['compute'],
): Partial<Pod> {
  const { volumeSize, volumePath, startSsh, startJupyter } = template;
  return {
    ...containerFromTemplate(template, accountId),
    startSsh,
    startJupyter,
    ...(compute === 'GPU' && { volumeSize }),
    ...(volumePath !== '' && { volumePath }),
  };
}

/** What a pod that is there takes from one: its disks stay. */
export function applyTemplate(pod: Pod, template: Template): Pod {
  const container = containerFromTemplate(template, pod.accountId);
  return { ...pod, ...container, containerDisk: Math.max(pod.containerDisk, container.containerDisk) };
}
