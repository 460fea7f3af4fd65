import type { ContainerStatus, PodObject } from './kubernetes-objects.ts';

/** What a pod's status means for its instance. */
export interface PodState {
  status: 'starting' | 'running' | 'exited';
  /** In seconds precision, as the kubelet reports them; null where it did not. */
  startedAt: number | null;
  endedAt: number | null;
  exitCode: number | null;
  /** Why it waits or has ended, for users; empty if there is nothing to say. */
  reasons: string[];
  /** It waits for a node. */
  isUnscheduled: boolean;
  /** It waits for something that cannot get better by itself: its spec or its image is wrong. */
  isPermanent: boolean;
  /** Its program could not be run at all. */
  neverRan: boolean;
  /** It ended because of its node or of other pods, not by a fault of its own. */
  isDisrupted: boolean;
}

/** Reasons of a waiting container that only another spec can mend. */
const PERMANENT_WAITING = [
  'InvalidImageName',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
  'ErrImageNeverPull',
];
/** Messages of registries for errors that a retry does not fix. */
const PERMANENT_PULL =
  /not found|manifest unknown|does not exist|denied|unauthorized|authentication required|no basic auth|no match for platform|invalid reference/i;
const START_ERRORS = ['StartError', 'ContainerCannotRun'];

export function podState(pod: PodObject): PodState {
  const { status = {} } = pod;
  const container = status.containerStatuses?.[0];
  const { running, terminated } = container?.state ?? {};
  const ended =
    terminated !== undefined || status.phase === 'Succeeded' || status.phase === 'Failed' || isLost(pod);
  const neverRan = terminated !== undefined && START_ERRORS.includes(terminated.reason ?? '');
  if (ended)
    return {
      ...WAITING,
      status: 'exited',
      startedAt: time(terminated?.startedAt) ?? time(status.startTime),
      endedAt: time(terminated?.finishedAt),
      exitCode: isLost(pod) ? null : (terminated?.exitCode ?? null),
      reasons: endReasons(pod, container),
      neverRan,
      isPermanent: neverRan,
      isDisrupted: disruption(pod) !== undefined || isRefused(pod) || isUnseen(container),
    };
  if (running !== undefined)
    return { ...WAITING, status: 'running', startedAt: time(running.startedAt), reasons: [] };
  return waitingState(pod, container);
}

const WAITING: PodState = {
  status: 'starting',
  startedAt: null,
  endedAt: null,
  exitCode: null,
  reasons: [],
  isUnscheduled: false,
  isPermanent: false,
  neverRan: false,
  isDisrupted: false,
};

function waitingState(pod: PodObject, container: ContainerStatus | undefined): PodState {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status === 'False')
    return { ...WAITING, isUnscheduled: true, reasons: [unschedulableReason(scheduled.message ?? '')] };
  if (pod.spec.nodeName === undefined)
    return { ...WAITING, isUnscheduled: true, reasons: ['It waits for a node.'] };
  const { reason = '', message = '' } = container?.state?.waiting ?? {};
  const isPull = /^(?:ErrImagePull|ImagePullBackOff|ImageInspectError|RegistryUnavailable)$/.test(reason);
  if (isPull)
    return {
      ...WAITING,
      reasons: [`the image ${container?.image ?? ''} could not be pulled: ${pullMessage(message)}`],
      isPermanent: PERMANENT_PULL.test(message),
    };
  if (PERMANENT_WAITING.includes(reason))
    return {
      ...WAITING,
      reasons: [`the container could not be created: ${message || reason}`],
      isPermanent: true,
    };
  return WAITING;
}

/** The last part says what the registry answered. */
function pullMessage(message: string): string {
  const last = /(?:Error: )?(?:failed to pull and unpack image "[^"]*": )?(.*)$/s.exec(
    message.replace(/^rpc error: code = \w+ desc = /, ''),
  );
  return (last?.[1] ?? message).trim().slice(0, 500) || 'no reason given';
}

const RESOURCES: Readonly<Record<string, string>> = {
  cpu: 'free CPU',
  memory: 'free memory',
  'ephemeral-storage': 'free disk space',
  pods: 'room for another pod',
};

/** From the scheduler's words, such as `0/3 nodes are available: 3 Insufficient nvidia.com/gpu.` */
export function unschedulableReason(message: string): string {
  const [, nodes] = /^\d+\/(\d+) nodes are available/.exec(message) ?? [];
  const missing = [...message.matchAll(/Insufficient ([^\s,.]+(?:\.[^\s,.]+)*)/g)].map(
    ([, resource = '']) => RESOURCES[resource] ?? `free ${resource}`,
  );
  const causes = [
    ...new Set(missing),
    ...(/didn't match Pod's node affinity\/selector/.test(message) ? ['the wanted GPU or label'] : []),
    ...(/untolerated taint/.test(message) ? ['no taint that keeps it away'] : []),
  ];
  if (nodes === '0') return 'It waits for a node: the cluster has none.';
  return causes.length === 0
    ? `It waits for a node: ${message || 'none was chosen yet'}`
    : `It waits for a node: none of ${nodes ?? 'its'} has ${causes.join(' and ')}.`;
}

/**
 * The node does not answer, and Kubernetes has given the pod up. One that the node had not begun to start has
 * no condition `Ready` at all.
 */
export function isLost(pod: PodObject): boolean {
  return (
    pod.metadata.deletionTimestamp !== undefined &&
    disruption(pod) === 'DeletionByTaintManager' &&
    pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') !== true
  );
}

/** The node did not take it, after the scheduler had chosen it. */
function isRefused({ status: { reason = '' } = {} }: PodObject): boolean {
  return /^(?:NodeAffinity|UnexpectedAdmissionError|OutOf.*)$/.test(reason);
}

/** Its node was restarted meanwhile, so that nobody saw how it ended. */
function isUnseen(container: ContainerStatus | undefined): boolean {
  return /^(?:Unknown|ContainerStatusUnknown)$/.test(container?.state?.terminated?.reason ?? '');
}

function disruption({ status }: PodObject): string | undefined {
  return status?.conditions?.find(({ type, status: is }) => type === 'DisruptionTarget' && is === 'True')
    ?.reason;
}

function endReasons(pod: PodObject, container: ContainerStatus | undefined): string[] {
  const { status = {} } = pod;
  const terminated = container?.state?.terminated;
  if (isLost(pod)) return [`The node ${pod.spec.nodeName ?? ''} was lost.`];
  if (disruption(pod) === 'PreemptionByScheduler') return ['It made room for a pod of higher priority.'];
  if (status.reason === 'Evicted') return [`The node evicted it: ${status.message ?? 'no reason given'}`];
  if (status.reason === 'DeadlineExceeded') return ['It ran longer than it may.'];
  if (isRefused(pod)) return [`The node refused it: ${status.message ?? status.reason}`];
  if (disruption(pod) === 'EvictionByEvictionAPI') return ['Its node is drained.'];
  if (isUnseen(container)) return [`The node ${pod.spec.nodeName ?? ''} was restarted.`];
  if (terminated?.reason === 'OOMKilled') return ['It ran out of memory.'];
  if (terminated !== undefined && START_ERRORS.includes(terminated.reason ?? ''))
    return [startMessage(terminated.message ?? '')];
  return [];
}

/** The runtime's own words come last, after what called it. */
function startMessage(message: string): string {
  const executable = /exec: (.*)$/s.exec(message)?.[1];
  return `the command could not be run: ${(executable ?? message).trim()}`;
}

function time(text: string | undefined): number | null {
  const at = Date.parse(text ?? '');
  // The kubelet writes year 1 or 1970 where it does not know.
  return at > 0 ? at : null;
}
