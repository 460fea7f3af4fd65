import { POD_ACTIONS } from '../../domain/pods/pod-states.ts';
import {
  boolean,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  stringEnum,
  text,
} from '../rest/json-schema.ts';
import { dateTime, virtualGpu } from './common.v2.schema.ts';
import { problemSchema } from './rest-v2.errors.ts';
import { containerFields, persistentMount, containerResponseFields } from './container.v2.schema.ts';
import { CLUSTER_ROLES, POD_STATUSES, CLOUD_TYPES } from '../../domain/pods/pod-record.ts';
import {
  MAX_NAME_LENGTH,
  GPU_COUNT,
  MAX_IMAGE_REFERENCE_LENGTH,
  CUDA_VERSION_PATTERN,
  V2_MIN_VCPU_COUNT,
} from '../../domain/limits.ts';

/** The wire objects of pods. */

export const status = stringEnum(POD_STATUSES, {
  description:
    'PROVISIONING: it has a place; STARTING: its image is fetched and it starts; RUNNING; EXITED: ' +
    'stopped, its disks are kept; ERROR: it did not start, or ended by itself with an error',
});
const action = stringEnum(POD_ACTIONS);
const cloud = stringEnum(CLOUD_TYPES, {
  description: "The tier. Here all machines are the operator's own; only prices may differ",
});

const networkMount = object({
  volumeId: text({ minLength: 1, description: 'A network volume in the data center of the pod' }),
  path: text({ minLength: 1, description: 'Where it is mounted' }),
});
export const mounts = object(
  {},
  { persistent: persistentMount, network: list(networkMount, { maxItems: 1 }) },
  {
    description:
      'A disk of its own, which stays until the pod is terminated, or a network volume; not both. The ' +
      'kind is fixed when the pod is made',
  },
);
/** What comes out may be smaller than what may be sent: other interfaces allow smaller sizes. */
const shownMounts = object(
  {},
  {
    persistent: object({ size: integer(), path: text() }),
    network: list(object({ volumeId: text(), path: text() })),
  },
);

const cudaVersion = { pattern: CUDA_VERSION_PATTERN };
const createGpu = object(
  {
    id: text({ minLength: 1, description: 'A GPU type of the catalog; no other one is taken in its place' }),
  },
  {
    count: integer({ ...GPU_COUNT, default: 1 }),
    allowedCudaVersions: list(text(cudaVersion), {
      description: 'CUDA versions that the machine may have; empty is any. Not together with minCudaVersion',
    }),
    minCudaVersion: text({
      ...cudaVersion,
      description: 'The lowest CUDA version that the machine may have. Not together with allowedCudaVersions',
    }),
    minRamPerGpu: integer({ minimum: 1, description: 'GB of memory for each GPU' }),
    minVcpuCountPerGpu: integer({ minimum: 1 }),
  },
);
const createCpu = object({
  id: text({ minLength: 1, description: 'A CPU flavour of the catalog' }),
  vcpuCount: integer({ minimum: V2_MIN_VCPU_COUNT, description: 'A power of two' }),
});

const name = text({ minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'Need not be unique' });
const image = text({
  minLength: 1,
  maxLength: MAX_IMAGE_REFERENCE_LENGTH,
  description: 'Container image with tag',
});
const templateId = text({
  minLength: 1,
  description:
    'A template for pods to take the container from, once; fields of the body override it, and env is merged by name',
});
const globalNetworking = boolean({ description: 'Takes effect at the next start' });
const stopAfter = nullable(dateTime('Berth only: when it is stopped'));
const terminateAfter = nullable(dateTime('Berth only: when it is terminated'));

const createFields = object(
  { name },
  {
    image,
    templateId,
    gpu: createGpu,
    cpu: createCpu,
    cloud,
    dataCenterIds: list(text({ minLength: 1 }), {
      description: 'Where it may run, the most wanted first; empty is anywhere',
    }),
    globalNetworking,
    mounts,
    startJupyter: boolean({
      description: 'Put a password for Jupyter into its environment (JUPYTER_PASSWORD)',
    }),
    startSsh: boolean({ description: "Put the account's SSH keys into its environment (PUBLIC_KEY)" }),
    stopAfter,
    terminateAfter,
    ...containerFields,
  },
);

export const createPod: typeof createFields = named('CreatePod', {
  ...createFields,
  description: 'Exactly one of gpu and cpu is needed, and an image unless a template has one.',
  if: { not: { properties: { templateId: {} }, required: ['templateId'] } },
  then: { properties: { image: {} }, required: ['image'] },
});
export const podCheck = named(
  'PodCheck',
  object(
    {
      ok: boolean({ description: 'Whether a pod like this can be created now' }),
      problem: nullable(problemSchema),
      dataCenterId: nullable(text({ description: 'Where it would run' })),
      costPerHour: nullable(
        number({ description: 'US dollars for each hour that it runs, its disks not counted' }),
      ),
      vcpuCount: nullable(integer()),
      memory: nullable(integer({ description: 'In GB' })),
      interrupts: list(text(), { description: 'Interruptible pods of yours that would make room for it' }),
    },
    {},
    { description: 'What a creation would answer now' },
  ),
);
export const updatePod = named(
  'UpdatePod',
  object(
    {},
    {
      name,
      image,
      templateId,
      mounts,
      locked: boolean({ description: 'A locked pod cannot be stopped, reset or terminated' }),
      globalNetworking,
      stopAfter,
      terminateAfter,
      ...containerFields,
    },
  ),
);
export const podAction = named('PodActionRequest', object({ action }));

const sshEndpoint = named(
  'PodSshEndpoint',
  object({ host: text(), port: integer(), username: text(), command: text({ description: 'Ready to run' }) }),
);
const share = object({ util: integer({ description: 'Per cent' }) });
const runtime = named(
  'PodRuntime',
  object({
    uptime: integer({ description: 'Seconds since it started' }),
    gpus: list(object({ util: integer(), memoryUtil: integer() })),
    cpu: share,
    memory: share,
    ports: list(
      object({ private: integer(), public: nullable(integer()), type: text(), ip: nullable(text()) }),
    ),
  }),
);

export const pod = named(
  'Pod',
  object(
    {
      id: text(),
      name: text(),
      status,
      actions: list(action, { description: 'The actions that are possible now' }),
      ...containerResponseFields,
      mounts: shownMounts,
      cloud,
      dataCenterId: nullable(text()),
      cudaVersion: nullable(text()),
      ssh: named('PodSsh', object({ proxy: nullable(sshEndpoint), direct: nullable(sshEndpoint) })),
      template: nullable(text()),
      cost: number({ description: 'US dollars for an hour; 0 while it does not run' }),
      locked: boolean(),
      globalNetworking: named(
        'PodGlobalNetworking',
        object({ enabled: boolean() }, { ip: text(), internalDns: text() }),
      ),
      runtime: nullable(runtime),
      createdAt: dateTime('When it was made'),
      startedAt: nullable(dateTime('When it was started last')),
      statusDetail: nullable(text({ description: 'Berth only: what is being done, or why it ended' })),
      diskLimits: named(
        'PodDiskLimits',
        object(
          { container: boolean(), volume: boolean() },
          {},
          { description: 'Berth only: whether the size of each disk is a limit here, or only a number' },
        ),
      ),
      stopAfter,
      terminateAfter,
    },
    {
      gpu: named(
        'PodGpu',
        object(
          {
            id: text(),
            count: integer(),
            vcpuCount: integer(),
            memory: integer({ description: 'In GB' }),
          },
          { virtual: virtualGpu },
        ),
      ),
      cluster: named(
        'PodCluster',
        object(
          {
            id: text(),
            rank: nullable(integer({ description: 'From 0, which is the first node of its cluster' })),
          },
          {
            role: stringEnum(CLUSTER_ROLES),
            ip: text({ description: "Its address in the cluster's network" }),
          },
        ),
      ),
      cpu: named(
        'PodCpu',
        object({ id: text(), vcpuCount: integer(), memory: integer({ description: 'In GB' }) }),
      ),
    },
    { description: 'A rented machine' },
  ),
);
