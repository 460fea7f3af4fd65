import { BerthError } from '../../support/errors.ts';
import type { Pod, PodStatus } from './pod-record.ts';

/** What can be asked of a pod. `reset` is REST v1's alone. */
export type PodAction = 'start' | 'stop' | 'restart' | 'reset' | 'terminate';
export const POD_ACTIONS = ['start', 'stop', 'restart', 'terminate'] as const;

const ALLOWED_ACTIONS: Record<PodStatus, readonly PodAction[]> = {
  PROVISIONING: ['stop', 'terminate'],
  STARTING: ['stop', 'reset', 'terminate'],
  RUNNING: ['stop', 'restart', 'reset', 'terminate'],
  EXITED: ['start', 'terminate'],
  ERROR: ['start', 'terminate'],
  TERMINATED: [],
};
/** Its stop was requested and has not ended yet. */
const ALLOWED_WHILE_STOPPING: readonly PodAction[] = ['stop', 'terminate'];
/** A lock that let a pod be deleted, but not paused, would protect nothing. */
const ALLOWED_WHEN_LOCKED: readonly PodAction[] = ['start'];

/** A member of a cluster goes with it. */
const REFUSED_IN_CLUSTER: readonly PodAction[] = ['terminate'];

type PodActionState = Pick<Pod, 'status' | 'wanted' | 'locked'> & Partial<Pick<Pod, 'clusterId'>>;

/** It has hardware, or is about to. */
export function holdsHardware({ status }: Pick<Pod, 'status'>): boolean {
  return status === 'PROVISIONING' || status === 'STARTING' || status === 'RUNNING';
}

function actionsInState(pod: PodActionState): readonly PodAction[] {
  return holdsHardware(pod) && pod.wanted !== 'running'
    ? ALLOWED_WHILE_STOPPING
    : ALLOWED_ACTIONS[pod.status];
}

/** What may be asked of it now, in the words that REST v2 has. */
export function allowedActions(pod: PodActionState): (typeof POD_ACTIONS)[number][] {
  const allowed = actionsInState(pod).filter(
    (action) =>
      (!pod.locked || ALLOWED_WHEN_LOCKED.includes(action)) &&
      !(typeof pod.clusterId === 'string' && REFUSED_IN_CLUSTER.includes(action)),
  );
  return POD_ACTIONS.filter((action) => allowed.includes(action));
}

/** Refuses what cannot be asked of it now. */
export function checkAction(pod: PodActionState & Pick<Pod, 'id'>, action: PodAction): void {
  if (!actionsInState(pod).includes(action)) {
    const can = allowedActions(pod);
    const stopping = holdsHardware(pod) && pod.wanted !== 'running' ? ' and stopping' : '';
    throw new BerthError(
      'state',
      `pod ${pod.id} is ${pod.status}${stopping}, so it cannot ${action}; ` +
        `possible now: ${can.join(', ') || 'nothing'}`,
    );
  }
  if (pod.locked && !ALLOWED_WHEN_LOCKED.includes(action)) throw lockedError(pod.id, action);
}

export function lockedError(id: string, action: string): BerthError {
  return new BerthError(
    'state',
    `pod ${id} is locked, so it cannot ${action}; unlock it first (locked: false)`,
  );
}

export const DESIRED_STATUSES = ['RUNNING', 'EXITED', 'TERMINATED'] as const;
export type DesiredStatus = (typeof DESIRED_STATUSES)[number];

/** The older interfaces show the wanted state, not the actual one. */
export function desiredStatus({ wanted }: Pick<Pod, 'wanted'>): DesiredStatus {
  return wanted === 'running' ? 'RUNNING' : wanted === 'stopped' ? 'EXITED' : 'TERMINATED';
}

const STATUS_TEXT: Record<PodStatus, string> = {
  PROVISIONING: 'Rented by User',
  STARTING: 'Starting',
  RUNNING: 'Running',
  EXITED: 'Exited by User',
  ERROR: 'Failed',
  TERMINATED: 'Terminated by User',
};

/** The last thing that happened to it, for people. */
export function lastStatusChange({
  status,
  statusDetail,
  statusChangedAt,
}: Pick<Pod, 'status' | 'statusDetail' | 'statusChangedAt'>): string {
  return `${statusDetail ?? STATUS_TEXT[status]}: ${new Date(statusChangedAt).toUTCString()}`;
}

/** The status detail of a pod that was interrupted to make room. */
export const INTERRUPTED_DETAIL = 'Interrupted: a pod that is not interruptible needs its place';

export function isInterrupted({ statusDetail }: Pick<Pod, 'statusDetail'>): boolean {
  return statusDetail === INTERRUPTED_DETAIL;
}

/** Pods of a cluster are created, changed and deleted together. */
export function refuseClusterMember(pod: Pod, action: string): Pod {
  if (pod.clusterId !== null)
    throw new BerthError(
      'state',
      `pod ${pod.id} belongs to the cluster ${pod.clusterId}, so it cannot be ${action} by itself; use the cluster`,
    );
  return pod;
}
