import { BerthError } from '../../support/errors.ts';
import { requestStop } from '../pods/pod-transitions.ts';
import { INTERRUPTED_DETAIL } from '../pods/pod-states.ts';
import type { PodPlacement, PodCandidate } from './pod-placement.ts';
import type { GpusInUse, Pod } from '../pods/pod-record.ts';

/** Who has the hardware. */
export interface GpuUsers {
  /** The GPUs that pods and workers have or are about to have. */
  gpusInUse: GpusInUse[];
  /** Pods of any account that run and may be interrupted. */
  interruptible: Pod[];
  /** Pods that are stopping and still have their GPUs, which `gpusInUse` counts. Their GPUs may be promised to pods that it counts as well. */
  stopping: Pod[];
}

export interface PlacementWithInterruptions {
  placement: PodPlacement;
  /** Those that have to go for it, told to stop. */
  interrupted: Pod[];
}

/**
 * A place. Where none is free now, one that pods are about to leave anyway, and where that is not
 * enough, one that interruptible pods have to leave: the lowest bids first, the newest first among
 * equals, and no more of them than are needed. One that is locked stays. `place` throws `capacity`
 * where there is no room.
 */
export function placeOrInterrupt(
  place: (sites: readonly PodCandidate[], held: readonly GpusInUse[]) => PodPlacement,
  sites: readonly PodCandidate[],
  { gpusInUse, stopping, interruptible }: GpuUsers,
  now: number,
): PlacementWithInterruptions {
  const full = tryPlace(() => place(sites, gpusInUseWithout(gpusInUse, stopping)));
  if (!(full instanceof BerthError)) return { placement: full, interrupted: [] };
  const without = (going: readonly Pod[]): PodPlacement | BerthError =>
    tryPlace(() =>
      place(
        candidatesWithout(sites, [...stopping, ...going]),
        gpusInUseWithout(gpusInUse, [...stopping, ...going]),
      ),
    );
  const soon = without([]);
  if (!(soon instanceof BerthError)) return { placement: soon, interrupted: [] };
  const order = interruptible
    .filter(isInterruptible)
    .sort((one, other) => (one.bidPerGpu ?? 0) - (other.bidPerGpu ?? 0) || other.createdAt - one.createdAt);
  let going: Pod[] = [];
  let found: PodPlacement | BerthError = full;
  for (const pod of order) {
    going.push(pod);
    found = without(going);
    if (!(found instanceof BerthError)) break;
  }
  if (found instanceof BerthError) throw full;
  for (const pod of [...going].reverse()) {
    const fewer = going.filter((one) => one !== pod);
    const still = without(fewer);
    if (!(still instanceof BerthError)) [going, found] = [fewer, still];
  }
  return { placement: found, interrupted: going.map((pod) => requestStop(pod, now, INTERRUPTED_DETAIL)) };
}

/** For a pod that is interruptible itself. */
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

/** What the engines will have free when these are gone. */
function candidatesWithout(sites: readonly PodCandidate[], gone: readonly Pod[]): PodCandidate[] {
  return sites.map((site) => {
    const together = new Set(
      sites.filter(({ engine }) => engine === site.engine).map(({ dataCenterId }) => dataCenterId),
    );
    const freed = (gpuTypeId: string): number =>
      gone
        .filter((pod) => together.has(pod.dataCenterId) && pod.gpuTypeId === gpuTypeId)
        .reduce((sum, { gpuCount }) => sum + gpuCount, 0);
    return {
      ...site,
      capacity: {
        ...site.capacity,
        gpus: site.capacity.gpus.map((gpu) => ({
          ...gpu,
          free: Math.min(gpu.total, gpu.free + freed(gpu.gpuTypeId)),
        })),
      },
    };
  });
}

function gpusInUseWithout(held: readonly GpusInUse[], gone: readonly Pod[]): GpusInUse[] {
  return held.map((holder) => ({
    ...holder,
    count:
      holder.count -
      gone
        .filter((pod) => pod.dataCenterId === holder.dataCenterId && pod.gpuTypeId === holder.gpuTypeId)
        .reduce((sum, { gpuCount }) => sum + gpuCount, 0),
  }));
}
