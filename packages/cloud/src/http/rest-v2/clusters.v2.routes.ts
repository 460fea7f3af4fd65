import { countByStatus } from '../../resources/clusters/clusters.ts';
import type { ClusterView } from '../../resources/clusters/clusters.ts';
import type { NewCluster } from '../../domain/clusters/new-cluster.ts';
import type { PodPort } from '../../resources/pods/pod-runtime.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { isoTime } from '../../support/clock.ts';
import { ruleError } from '../../support/errors.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { boolean, integer, list, map, named, object, stringEnum, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { byId, dateTime } from './common.v2.schema.ts';
import { containerFields } from './container.v2.schema.ts';
import { createPodInput } from './pods.v2.input.ts';
import { mounts, pod, status } from './pods.v2.schema.ts';
import { loadAndSerializePod } from './pods.v2.routes.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';
import { CLUSTER_TYPES } from '../../domain/clusters/cluster-record.ts';
import {
  MAX_NAME_LENGTH,
  GPU_COUNT,
  CLUSTER_POD_COUNT,
  MAX_IMAGE_REFERENCE_LENGTH,
} from '../../domain/limits.ts';
import { SSH_PORT } from '../../domain/ssh-keys.ts';

const type = stringEnum(CLUSTER_TYPES, {
  description:
    'SLURM and RAY tell the first node from the others by a role; what they run comes with the image',
});
const compute = named(
  'ClusterCompute',
  object(
    {
      gpuTypeId: text({ minLength: 1, description: 'A GPU type of the catalog' }),
      gpuCountPerPod: integer({ ...GPU_COUNT, description: 'GPUs of each pod' }),
      podCount: integer({ ...CLUSTER_POD_COUNT, description: 'How many pods' }),
    },
    {},
    { description: 'The shape of a cluster: all of its pods are alike' },
  ),
);

const cluster = named(
  'Cluster',
  object(
    {
      id: text(),
      name: text(),
      type,
      compute,
      pods: named(
        'ClusterPodsSummary',
        object({
          total: integer(),
          byStatus: map(integer(), { description: 'How many pods have which status' }),
        }),
      ),
      createdAt: dateTime('When it was made'),
    },
    {
      template: text({ description: 'The template that its pods were made from' }),
      dataCenterId: text({ description: 'Where all of its pods are' }),
      network: named(
        'ClusterNetwork',
        object({ cidr: text({ description: 'The addresses of its network' }) }),
      ),
      primary: named(
        'ClusterPrimary',
        object(
          { podId: text(), status },
          { sshEndpoint: text({ description: 'host:port, while it runs and exposes 22/tcp' }) },
        ),
      ),
    },
    { description: 'Several pods with one network. The pods themselves are at /v2/clusters/{id}/pods' },
  ),
);

const name = text({ minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'Need not be unique' });
const { args, cmd, entrypoint, disk, env, ports } = containerFields;
const createFields = object(
  { name, type, compute },
  {
    image: text({
      minLength: 1,
      maxLength: MAX_IMAGE_REFERENCE_LENGTH,
      description: 'Container image with tag',
    }),
    templateId: text({
      minLength: 1,
      description:
        'A template for pods to take the container from; not together with container fields or mounts. ' +
        'It is remembered',
    }),
    dataCenterIds: list(text({ minLength: 1 }), {
      description:
        'Where it may be, the most wanted first; empty is anywhere. All of its pods are in one data center',
    }),
    mounts,
    startJupyter: boolean({
      description: 'Put a password for Jupyter into the environment of each pod (JUPYTER_PASSWORD)',
    }),
    startSsh: boolean({
      description: "Put the account's SSH keys into the environment of each pod (PUBLIC_KEY)",
    }),
    args,
    cmd,
    entrypoint,
    disk,
    env,
    ports,
  },
);
const createCluster: typeof createFields = named('CreateCluster', {
  ...createFields,
  description:
    'An image is needed unless a template has one. For a private image, use a template with registry credentials.',
  if: { not: { properties: { templateId: {} }, required: ['templateId'] } },
  then: { properties: { image: {} }, required: ['image'] },
});
type CreateBody = Static<typeof createCluster>;

/** What a template says about a pod, and a body may not say beside it. */
const TEMPLATE_FIELDS = [
  'image',
  'args',
  'cmd',
  'entrypoint',
  'disk',
  'env',
  'ports',
  'mounts',
] as const satisfies (keyof CreateBody)[];

export function clusterOperations({ clusters, pods, catalog }: ResourceServices): Operation[] {
  const tag = 'Clusters';
  const show = async (found: ClusterView): Promise<Static<typeof cluster>> =>
    serializeCluster(found, await sshOf(found.members[0]));
  const sshOf = async (primary: Pod | undefined): Promise<PodPort | undefined> =>
    primary === undefined
      ? undefined
      : (await pods.ports(primary)).find((port) => port.private === SSH_PORT && port.type === 'tcp');
  return [
    operation({
      id: 'listClusters',
      method: 'GET',
      path: '/clusters',
      tag,
      summary: 'List your clusters, newest first',
      access: 'read',
      status: 200,
      response: named('ClusterList', object({ clusters: list(cluster) })),
      handle: async ({ caller }) => ({
        clusters: await Promise.all((await clusters.list(caller)).map(show)),
      }),
    }),
    operation({
      id: 'createCluster',
      method: 'POST',
      path: '/clusters',
      tag,
      summary: 'Create a cluster',
      access: 'write',
      description:
        'All of its pods get their place in one data center at once, or it is refused. The rest goes ' +
        'on by itself: look at `pods.byStatus`.',
      body: createCluster,
      status: 201,
      response: cluster,
      errorStatuses: [400, 402, 404, 413, 422, 507],
      handle: async ({ caller, body }) =>
        show(
          await clusters.create(
            caller,
            createClusterInput(body, ({ id }) => pods.jupyterPassword(id)),
          ),
        ),
    }),
    operation({
      id: 'getCluster',
      method: 'GET',
      path: '/clusters/{id}',
      tag,
      summary: 'Get a cluster',
      access: 'read',
      params: byId,
      status: 200,
      response: cluster,
      errorStatuses: [404],
      handle: async ({ caller, params }) => show(await clusters.get(caller, params.id)),
    }),
    operation({
      id: 'updateCluster',
      method: 'PATCH',
      path: '/clusters/{id}',
      tag,
      summary: 'Rename a cluster',
      access: 'write',
      description: 'Nothing but its name can change.',
      params: byId,
      body: named('UpdateCluster', object({}, { name }, { minProperties: 1 })),
      status: 200,
      response: cluster,
      errorStatuses: [400, 404, 413, 422],
      handle: async ({ caller, params, body }) => show(await clusters.rename(caller, params.id, body.name)),
    }),
    operation({
      id: 'deleteCluster',
      method: 'DELETE',
      path: '/clusters/{id}',
      tag,
      summary: 'Delete a cluster and terminate its pods',
      access: 'write',
      params: byId,
      status: 204,
      errorStatuses: [404],
      handle: ({ caller, params }) => clusters.remove(caller, params.id),
    }),
    operation({
      id: 'listClusterPods',
      method: 'GET',
      path: '/clusters/{id}/pods',
      tag,
      summary: 'List the pods of a cluster by rank',
      access: 'read',
      params: byId,
      status: 200,
      response: named('ClusterPodList', object({ pods: list(pod) })),
      errorStatuses: [404],
      handle: async ({ caller, params }) => ({
        pods: await Promise.all(
          (await clusters.get(caller, params.id)).members.map((member) =>
            loadAndSerializePod({ pods, catalog }, member),
          ),
        ),
      }),
    }),
  ];
}

function createClusterInput(
  {
    name: clusterName,
    type: clusterType,
    compute: { gpuTypeId, gpuCountPerPod, podCount },
    ...container
  }: CreateBody,
  jupyterPassword: (base: Pod) => string,
): NewCluster {
  const beside = TEMPLATE_FIELDS.filter(
    (field) => container.templateId !== undefined && container[field] !== undefined,
  );
  if (beside.length > 0)
    throw ruleError(
      `templateId and ${beside.join(', ')} exclude each other; say it in the template, or leave the template out`,
    );
  return {
    name: clusterName,
    type: clusterType,
    podCount,
    pod: createPodInput(
      { name: clusterName, gpu: { id: gpuTypeId, count: gpuCountPerPod }, ...container },
      jupyterPassword,
    ),
  };
}

function serializeCluster(
  {
    id,
    name: clusterName,
    type: clusterType,
    gpuTypeId,
    gpuCountPerPod,
    podCount,
    templateId,
    dataCenterId,
    subnet,
    createdAt,
    members,
  }: ClusterView,
  ssh: PodPort | undefined,
): Static<typeof cluster> {
  const [primary] = members;
  return {
    id,
    name: clusterName,
    type: clusterType,
    compute: { gpuTypeId, gpuCountPerPod, podCount },
    ...(templateId !== null && { template: templateId }),
    dataCenterId,
    pods: { total: members.length, byStatus: countByStatus(members) },
    ...(subnet !== null && { network: { cidr: subnet } }),
    ...(primary !== undefined && {
      primary: {
        podId: primary.id,
        status: primary.status,
        ...(ssh !== undefined &&
          ssh.public !== null && { sshEndpoint: `${ssh.ip ?? '127.0.0.1'}:${ssh.public}` }),
      },
    }),
    createdAt: isoTime(createdAt),
  };
}
