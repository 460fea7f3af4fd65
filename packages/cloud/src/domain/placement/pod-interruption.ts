import { BerthError } from '../../support/errors.ts';
import { requestStop } from '../pods/pod-transitions.ts';
import { INTERRUPTED_DETAIL } from '../pods/pod-states.ts';
import type { PodPlacement, PodCandidate } from './pod-placement.ts';
import type { GpusInUse, Pod } from '../pods/pod-record.ts';

/** The pods and workers that use GPUs. */
export interface GpuUsers {
  /** The GPUs of pods and workers that run or are about to start. */
  gpusInUse: GpusInUse[];
  /** Running pods of any account that may be interrupted. */
  interruptible: Pod[];
  /**
   * Stopping pods that still have their GPUs, which `gpusInUse` counts. The same GPUs may be reserved for
   * pods that it counts as well.
   */
  stopping: Pod[];
}

export interface PlacementWithInterruptions {
  placement: PodPlacement;
  /** Pods that have to stop for it. */
  interrupted: Pod[];
}

/**
 * Places a pod on free GPUs; if there are none, on GPUs of pods that are stopping; and if that is not
 * enough, on GPUs of interruptible pods: the lowest bids first, the newest first among equals, and no
 * more of them than needed. Locked pods are not interrupted. `place` throws `capacity` if nothing fits.
 */
export function placeOrInterrupt(
  place: (candidates: readonly PodCandidate[], gpusInUse: readonly GpusInUse[]) => PodPlacement,
  candidates: readonly PodCandidate[],
  { gpusInUse, stopping, interruptible }: GpuUsers,
  now: number,
): PlacementWithInterruptions {
  const full = tryPlace(() => place(candidates, gpusInUseWithout(gpusInUse, stopping)));
  if (!(full instanceof BerthError)) return { placement: full, interrupted: [] };
  const without = (victims: readonly Pod[]): PodPlacement | BerthError =>
    tryPlace(() =>
      place(
        candidatesWithout(candidates, [...stopping, ...victims]),
        gpusInUseWithout(gpusInUse, [...stopping, ...victims]),
      ),
    );
  const soon = without([]);
  if (!(soon instanceof BerthError)) return { placement: soon, interrupted: [] };
  const order = interruptible
    .filter(isInterruptible)
    .sort((one, other) => (one.bidPerGpu ?? 0) - (other.bidPerGpu ?? 0) || other.createdAt - one.createdAt);
  let victims: Pod[] = [];
  let found: PodPlacement | BerthError = full;
  for (const pod of order) {
    victims.push(pod);
    found = without(victims);
    if (!(found instanceof BerthError)) break;
  }
  if (found instanceof BerthError) throw full;
  for (const pod of [...victims].reverse()) {
    const fewer = victims.filter((one) => one !== pod);
    const still = without(fewer);
    if (!(still instanceof BerthError)) [victims, found] = [fewer, still];
  }
  return { placement: found, interrupted: victims.map((pod) => requestStop(pod, now, INTERRUPTED_DETAIL)) };
}

/** An interruptible pod interrupts no others. */
export function withoutInterruptible(holders: GpuUsers): GpuUsers {
  return { ...holders, interruptible: [] };
}

function isInterruptible({ interruptible, locked, wanted, gpuTypeId, gpuCount }: Pod): boolean {
  return interruptible && !locked && wanted === 'running' && gpuTypeId !== null && gpuCount > 0;
}

function tryPlace(place: () => PodPlacement): PodPlacement | BerthError {
  try {
    return place();
  } catch (error) {
    if (error instanceof BerthError && error.code === 'capacity') return error;
    throw error;
  }
}

/** The capacity when these pods have ended. */
function candidatesWithout(candidates: readonly PodCandidate[], gone: readonly Pod[]): PodCandidate[] {
  return candidates.map((candidate) => {
    const together = new Set(
      candidates.filter(({ engine }) => engine === candidate.engine).map(({ dataCenterId }) => dataCenterId),
    );
    const freed = (gpuTypeId: string): number =>
      gone
        .filter((pod) => together.has(pod.dataCenterId) && pod.gpuTypeId === gpuTypeId)
        .reduce((sum, { gpuCount }) => sum + gpuCount, 0);
    return {
      ...candidate,
      capacity: {
        ...candidate.capacity,
        gpus: candidate.capacity.gpus.map((gpu) => ({
          ...gpu,
          free: Math.min(gpu.total, gpu.free + freed(gpu.gpuTypeId)),
        })),
      },
    };
  });
}

function gpusInUseWithout(gpusInUse: readonly GpusInUse[], gone: readonly Pod[]): GpusInUse[] {
  return gpusInUse.map((holder) => ({
    ...holder,
    count:
      holder.count -
      gone
        .filter((pod) => pod.dataCenterId === holder.dataCenterId && pod.gpuTypeId === holder.gpuTypeId)
        .reduce((sum, { gpuCount }) => sum + gpuCount, 0),
  }));
}
