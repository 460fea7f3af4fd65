import type { Caller } from '../../domain/caller.ts';
import type { Pods } from '../../resources/pods/pods.ts';
import type { PodRuntime } from '../../resources/pods/pod-runtime.ts';
import { allowedActions, holdsHardware } from '../../domain/pods/pod-states.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { isoTime, isoTimeOrNull } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { boolean, list, named, object } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { byId } from './common.v2.schema.ts';
import { serializeContainer } from './container.v2.schema.ts';
import { logEvents, logQuery, readLogQuery } from './log-events.v2.ts';
import { paginate, pageQuery, pagination } from './pagination.v2.ts';
import { updatePodInput, createPodInput } from './pods.v2.input.ts';
import { createPod, pod, podAction, podCheck, updatePod } from './pods.v2.schema.ts';
import { toProblem } from './rest-v2.errors.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';
import { SSH_PORT } from '../../domain/ssh-keys.ts';

type PodResponse = Static<typeof pod>;

export function podOperations({ pods, catalog }: ResourceServices): Operation[] {
  const tag = 'Pods';
  const show = (found: Pod): Promise<PodResponse> => loadAndSerializePod({ pods, catalog }, found);
  return [
    operation({
      id: 'listPods',
      method: 'GET',
      path: '/pods',
      tag,
      summary: 'List your pods, newest first',
      access: 'read',
      query: object(
        {},
        {
          ...pageQuery,
          includeClusterPods: boolean({ default: false, description: 'Also pods that belong to a cluster' }),
        },
      ),
      status: 200,
      response: named('PodList', object({ pods: list(pod), pagination })),
      errorStatuses: [422],
      handle: async ({ caller, query }) => {
        const page = await paginate('pods', query, (slice) => pods.list(caller, slice));
        const shown =
          query.includeClusterPods === true
            ? page.items
            : page.items.filter(({ clusterId }) => clusterId === null);
        return { pods: await Promise.all(shown.map(show)), pagination: page.pagination };
      },
    }),
    operation({
      id: 'createPod',
      method: 'POST',
      path: '/pods',
      tag,
      summary: 'Create a pod',
      access: 'write',
      description:
        'It gets its place at once, or is refused where there is none. The rest goes on by itself: ' +
        'look at `status` and `statusDetail`, or follow the log.',
      body: createPod,
      status: 201,
      response: pod,
      errorStatuses: [400, 402, 404, 413, 422, 507],
      handle: async ({ caller, body }) =>
        show(
          await pods.create(
            caller,
            createPodInput(body, ({ id }) => pods.jupyterPassword(id)),
          ),
        ),
    }),
    operation({
      id: 'checkPod',
      method: 'POST',
      path: '/pods/check',
      tag,
      summary: 'See whether a pod can be created, and what it costs',
      access: 'read',
      description:
        'Takes what a creation takes, does all that it does and keeps nothing of it. `problem` is the ' +
        'error that a creation would answer now. A body that is not of the right form is refused as ' +
        'there, with 422.',
      body: createPod,
      status: 200,
      response: podCheck,
      errorStatuses: [413, 422],
      handle: async ({ caller, body }) => checkPod(pods, caller, body),
    }),
    operation({
      id: 'getPod',
      method: 'GET',
      path: '/pods/{id}',
      tag,
      summary: 'Get a pod',
      access: 'read',
      params: byId,
      podIdParam: 'id',
      status: 200,
      response: pod,
      errorStatuses: [404],
      handle: async ({ caller, params }) => show(await pods.get(caller, params.id)),
    }),
    operation({
      id: 'updatePod',
      method: 'PATCH',
      path: '/pods/{id}',
      tag,
      summary: 'Update a pod',
      access: 'write',
      description:
        'Only what is sent changes. Name, lock, instants and a larger volume take effect at once; what ' +
        'is built into its container restarts a running pod.',
      params: byId,
      body: updatePod,
      status: 200,
      response: pod,
      errorStatuses: [400, 404, 409, 413, 422],
      handle: async ({ caller, params, body }) =>
        show(await pods.update(caller, params.id, updatePodInput(body))),
    }),
    operation({
      id: 'podAction',
      method: 'POST',
      path: '/pods/{id}/action',
      tag,
      summary: 'Start, stop, restart or terminate a pod',
      access: 'write',
      description: 'What a pod can do now is in its `actions`. Terminate answers 204 without a body.',
      params: byId,
      podIdParam: 'id',
      body: podAction,
      status: 200,
      response: pod,
      allowNoContent: true,
      errorStatuses: [400, 402, 404, 409, 422, 507],
      handle: async ({ caller, params, body }) => {
        const after = await applyAction(pods, caller, params.id, body.action);
        return after === undefined ? undefined : show(after);
      },
    }),
    operation({
      id: 'deletePod',
      method: 'DELETE',
      path: '/pods/{id}',
      tag,
      summary: 'Terminate a pod',
      access: 'write',
      description: 'Its container and its disks are deleted; a network volume is kept.',
      params: byId,
      podIdParam: 'id',
      status: 204,
      errorStatuses: [404, 409],
      handle: ({ caller, params }) => pods.terminate(caller, params.id),
    }),
    operation({
      id: 'streamPodLogs',
      method: 'GET',
      path: '/pods/{id}/logs',
      tag,
      summary: 'Follow the log of a pod',
      access: 'read',
      eventStream: true,
      description:
        'Server-sent events; `data` is one line as {ts, source, line}. Last-Event-ID goes before ' +
        '`since`, and `since` before `tail`. It ends when the pod has ended and all lines are sent. The log ' +
        'of a pod that was terminated stays readable for a while.',
      params: byId,
      podIdParam: 'id',
      query: logQuery,
      status: 200,
      errorStatuses: [404, 422],
      handle: async ({ caller, params, query, lastEventId, signal }) =>
        logEvents(await pods.logs(caller, params.id, readLogQuery(query, lastEventId), signal)) as never,
    }),
  ];
}

async function checkPod(
  pods: Pods,
  caller: Caller,
  body: Static<typeof createPod>,
): Promise<Static<typeof podCheck>> {
  try {
    const input = createPodInput(body, ({ id }) => pods.jupyterPassword(id));
    const { pod: checked, interrupted } = await pods.check(caller, input);
    return {
      ok: true,
      problem: null,
      dataCenterId: checked.dataCenterId,
      costPerHour: checked.costPerHour,
      vcpuCount: checked.vcpuCount,
      memory: checked.memoryInGb,
      // Pods of other accounts are not shown.
      interrupts: interrupted.filter(({ accountId }) => accountId === caller.accountId).map(({ id }) => id),
    };
  } catch (error) {
    if (!(error instanceof BerthError) || error.code === 'internal' || error.code === 'unavailable')
      throw error;
    return {
      ok: false,
      problem: toProblem(error).body,
      dataCenterId: null,
      costPerHour: null,
      vcpuCount: null,
      memory: null,
      interrupts: [],
    };
  }
}

async function applyAction(
  pods: Pods,
  caller: Caller,
  id: string,
  action: Static<typeof podAction>['action'],
): Promise<Pod | undefined> {
  switch (action) {
    case 'start':
      return pods.start(caller, id);
    case 'stop':
      return pods.stop(caller, id);
    case 'restart':
      return pods.restart(caller, id);
    case 'terminate':
      await pods.terminate(caller, id);
      return undefined;
  }
}

export async function loadAndSerializePod(
  { pods, catalog }: Pick<ResourceServices, 'pods' | 'catalog'>,
  found: Pod,
): Promise<PodResponse> {
  const [runtime, limitsContainerDisk, isVirtual] = await Promise.all([
    pods.runtime(found),
    pods.limitsContainerDisk(found),
    found.gpuTypeId !== null && catalog.isVirtualGpu(found.dataCenterId, found.gpuTypeId),
  ]);
  return serializePod(found, runtime, { limitsContainerDisk, isVirtual });
}

function serializePod(
  found: Pod,
  runtime: PodRuntime | null,
  { limitsContainerDisk, isVirtual }: { limitsContainerDisk: boolean; isVirtual: boolean },
): PodResponse {
  const { vcpuCount, memoryInGb: memory } = found;
  return {
    id: found.id,
    name: found.name,
    status: found.status,
    actions: allowedActions(found),
    ...serializeContainer(found),
    mounts: serializeMounts(found),
    ...(found.compute === 'GPU'
      ? {
          gpu: {
            id: found.gpuTypeId ?? '',
            count: found.gpuCount,
            vcpuCount,
            memory,
            ...(isVirtual && { virtual: true as const }),
          },
        }
      : { cpu: { id: found.cpuFlavorId ?? '', vcpuCount, memory } }),
    cloud: found.cloud,
    dataCenterId: found.dataCenterId,
    cudaVersion: found.cudaVersion,
    ...(found.clusterId !== null && { cluster: serializeMembership(found.clusterId, found.membership) }),
    ssh: { proxy: null, direct: directSshOf(runtime) },
    template: found.templateId,
    cost: holdsHardware(found) ? found.costPerHour : 0,
    locked: found.locked,
    globalNetworking: { enabled: found.globalNetworking },
    runtime:
      runtime === null
        ? null
        : {
            uptime: runtime.uptime,
            gpus: runtime.gpus,
            cpu: { util: runtime.cpu },
            memory: { util: runtime.memory },
            ports: runtime.ports,
          },
    createdAt: isoTime(found.createdAt),
    startedAt: isoTimeOrNull(found.startedAt),
    statusDetail: found.statusDetail,
    // A volume is a folder of the machine, whose size nothing limits.
    diskLimits: { container: limitsContainerDisk, volume: false },
    stopAfter: isoTimeOrNull(found.stopAfter),
    terminateAfter: isoTimeOrNull(found.terminateAfter),
  };
}

function serializeMembership(id: string, membership: Pod['membership']): NonNullable<PodResponse['cluster']> {
  return {
    id,
    rank: membership?.rank ?? null,
    ...(membership !== null && {
      ...(membership.address !== null && { ip: membership.address }),
      ...(membership.role !== null && { role: membership.role }),
    }),
  };
}

function serializeMounts({ volumeSize, volumePath, networkVolumeId }: Pod): PodResponse['mounts'] {
  if (networkVolumeId !== null) return { network: [{ volumeId: networkVolumeId, path: volumePath }] };
  return volumeSize === 0 ? {} : { persistent: { size: volumeSize, path: volumePath } };
}

/** Straight to the server in the pod, where it has one and says so. */
function directSshOf(runtime: PodRuntime | null): PodResponse['ssh']['direct'] {
  const mapped = runtime?.ports.find((port) => port.private === SSH_PORT && port.type === 'tcp');
  if (mapped === undefined || mapped.public === null || mapped.ip === null) return null;
  return {
    host: mapped.ip,
    port: mapped.public,
    username: 'root',
    command: `ssh root@${mapped.ip} -p ${mapped.public}`,
  };
}
