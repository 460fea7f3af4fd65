import type { PodPlacement } from '../placement/pod-placement.ts';
import { checkAction, INTERRUPTED_DETAIL, isInterrupted } from './pod-states.ts';
import type { Pod } from './pod-record.ts';

/**
 * How a pod's record goes from one state to the next. What people ask for changes what is
 * wanted; the reconciler makes it so, and then writes what is. `settled` is false between the two.
 */

/** Back toward running, in its old place. */
export function requestStart(pod: Pod, placement: PodPlacement, costPerHour: number, now: number): Pod {
  checkAction(pod, 'start');
  // An instant that stopped it before does not stop it again.
  const stopAfter = pod.stopAfter !== null && pod.stopAfter <= now ? null : pod.stopAfter;
  return {
    ...withNextGeneration({ ...pod, ...placement }, now),
    stopAfter,
    costPerHour,
    status: 'PROVISIONING',
    statusDetail: 'Waiting to be started',
  };
}

export function requestStop(pod: Pod, now: number, why = 'Stopping'): Pod {
  checkAction(pod, 'stop');
  return pod.wanted === 'stopped'
    ? pod
    : { ...pod, wanted: 'stopped', settled: false, statusDetail: why, statusChangedAt: now, updatedAt: now };
}

export function requestRestart(pod: Pod, action: 'restart' | 'reset', now: number): Pod {
  checkAction(pod, action);
  return requestNewInstance(pod, now, 'Restarting');
}

/** With a new instance. One that waits for its first keeps waiting. */
export function requestNewInstance(pod: Pod, now: number, why: string): Pod {
  return {
    ...withNextGeneration(pod, now),
    status: pod.status === 'PROVISIONING' ? 'PROVISIONING' : 'STARTING',
    statusDetail: why,
  };
}

export function requestTermination(pod: Pod, now: number): Pod {
  checkAction(pod, 'terminate');
  return markTerminated(pod, now);
}

/** Its account is disabled: it stops, whatever state it is in, and also if it is locked. */
export function stopWithAccount(pod: Pod, now: number): Pod {
  return pod.wanted === 'running'
    ? {
        ...pod,
        wanted: 'stopped',
        settled: false,
        statusDetail: 'Stopping: the account is disabled',
        statusChangedAt: now,
        updatedAt: now,
      }
    : pod;
}

/** With its cluster, whatever state it is in. */
export function terminateWithCluster(pod: Pod, now: number): Pod {
  return markTerminated(pod, now);
}

function markTerminated(pod: Pod, now: number): Pod {
  return {
    ...pod,
    wanted: 'terminated',
    status: 'TERMINATED',
    statusDetail: null,
    statusChangedAt: now,
    settled: false,
    updatedAt: now,
  };
}

function withNextGeneration(pod: Pod, now: number): Pod {
  return {
    ...pod,
    wanted: 'running',
    generation: pod.generation + 1,
    settled: false,
    statusChangedAt: now,
    updatedAt: now,
  };
}

// What the reconciler observes.

/** Its engine was asked for an instance, or reports progress. */
export function markStarting(pod: Pod, detail: string, now: number): Pod {
  return { ...pod, status: 'STARTING', statusDetail: detail, statusChangedAt: now };
}

export interface PodRun {
  handle: string;
  startedAt: number;
  /** In the network of its cluster, where the engine chose it. */
  networkAddress?: string | undefined;
}

export function markRunning(pod: Pod, { handle, startedAt, networkAddress }: PodRun, now: number): Pod {
  return {
    ...withNetworkAddress(pod, networkAddress ?? null),
    handle,
    startedAt,
    instanceGeneration: pod.generation,
    endedAt: null,
    exitCode: null,
    status: 'RUNNING',
    statusDetail: null,
    statusChangedAt: now,
    settled: true,
  };
}

export interface PodExit {
  at: number;
  exitCode: number | null;
  /** Why, where nobody asked for it and it did not end well. */
  reason: string | null;
}

/** Nothing of it runs any more. Whoever wants it to run again says so. */
export function markEnded(pod: Pod, { at, exitCode, reason }: PodExit): Pod {
  const wasUp = pod.startedAt !== null && pod.endedAt === null;
  return {
    ...withNetworkAddress(pod, null),
    wanted: pod.wanted === 'terminated' ? 'terminated' : 'stopped',
    status: pod.wanted === 'terminated' ? 'TERMINATED' : reason === null ? 'EXITED' : 'ERROR',
    // An interrupted pod shows so until it is started again.
    statusDetail: reason ?? (isInterrupted(pod) ? INTERRUPTED_DETAIL : null),
    statusChangedAt: at,
    settled: true,
    exitCode,
    ...(wasUp && { endedAt: at }),
  };
}

/** An address within a subnet is fixed; only an address that the engine chose changes. */
function withNetworkAddress(pod: Pod, address: string | null): Pod {
  return pod.membership === null || pod.membership.subnet !== null
    ? pod
    : { ...pod, membership: { ...pod.membership, address } };
}
