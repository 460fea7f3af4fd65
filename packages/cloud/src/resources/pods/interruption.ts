import type { HeldGpus, Pod, PodFooting } from '../../store/pods.ts';
import { BerthError } from '../../support/errors.ts';
import { stopped } from './lifecycle.ts';
import { INTERRUPTED } from './states.ts';
import type { PodPlace, PodSite } from './placement.ts';

/** Who has the hardware. */
export type Holders = Pick<PodFooting, 'held' | 'leaving' | 'interruptible'>;

export interface Placed {
  place: PodPlace;
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
  place: (sites: readonly PodSite[], held: readonly HeldGpus[]) => PodPlace,
  sites: readonly PodSite[],
  { held, leaving, interruptible }: Holders,
  now: number,
): Placed {
  const full = attempt(() => place(sites, heldWithout(held, leaving)));
  if (!(full instanceof BerthError)) return { place: full, interrupted: [] };
  const without = (going: readonly Pod[]): PodPlace | BerthError =>
    attempt(() =>
      place(sitesWithout(sites, [...leaving, ...going]), heldWithout(held, [...leaving, ...going])),
    );
  const soon = without([]);
  if (!(soon instanceof BerthError)) return { place: soon, interrupted: [] };
  const order = interruptible
    .filter(mayGo)
    .sort((one, other) => (one.bidPerGpu ?? 0) - (other.bidPerGpu ?? 0) || other.createdAt - one.createdAt);
  let going: Pod[] = [];
  let found: PodPlace | BerthError = full;
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
  return { place: found, interrupted: going.map((pod) => stopped(pod, now, INTERRUPTED)) };
}

/** For a pod that is interruptible itself. */
export function interruptingNone(holders: Holders): Holders {
  return { ...holders, interruptible: [] };
}

function mayGo({ interruptible, locked, wanted, gpuTypeId, gpuCount }: Pod): boolean {
  return interruptible && !locked && wanted === 'running' && gpuTypeId !== null && gpuCount > 0;
}

function attempt(place: () => PodPlace): PodPlace | BerthError {
  try {
    return place();
  } catch (error) {
    if (error instanceof BerthError && error.code === 'capacity') return error;
    throw error;
  }
}

/** What the engines will have free when these are gone. */
function sitesWithout(sites: readonly PodSite[], gone: readonly Pod[]): PodSite[] {
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

function heldWithout(held: readonly HeldGpus[], gone: readonly Pod[]): HeldGpus[] {
  return held.map((holder) => ({
    ...holder,
    count:
      holder.count -
      gone
        .filter((pod) => pod.dataCenterId === holder.dataCenterId && pod.gpuTypeId === holder.gpuTypeId)
        .reduce((sum, { gpuCount }) => sum + gpuCount, 0),
  }));
}
