import type { ScalerType } from '../records.ts';

/** What an endpoint says about its size. */
export interface ScalerSettings {
  workersMin: number;
  workersMax: number;
  /** Seconds. */
  idleTimeout: number;
  scalerType: ScalerType;
  /** Seconds of waiting, or requests for each worker. */
  scalerValue: number;
}

/** What there is to do. Jobs of low priority start nothing and are not counted. */
export interface EndpointLoad {
  waiting: number;
  /** Those of the waiting that have waited longer than the scaler's delay. */
  overdue: number;
  inProgress: number;
}

export interface ScaledWorker {
  id: string;
  /** Starting: not heard of yet. Leaving: on its way out, and no longer counted. */
  state: 'starting' | 'ready' | 'leaving';
  busy: boolean;
  /** Since when it has had nothing to do; null while it has, or is starting. */
  idleSince: number | null;
}

export interface ScalingDecision {
  start: number;
  /** Workers that are no longer needed, the longest idle first. */
  stop: string[];
}

/**
 * How many workers to start and which to stop.
 *
 * By request count, the target is what the requests there are need. By queue delay, every
 * job that has waited too long gets a worker, less those already on their way: a slow start
 * is not answered with more starts. Either way an endpoint that has none starts one at once,
 * and the step goes straight to the target. A worker is stopped only after its idle time,
 * which keeps a load that wavers from starting and stopping workers; one that is still
 * starting is never stopped for idleness.
 */
export function scale(
  settings: ScalerSettings,
  load: EndpointLoad,
  workers: readonly ScaledWorker[],
  now: number,
): ScalingDecision {
  const present = workers.filter(({ state }) => state !== 'leaving');
  const target = clamp(targetWorkerCount(settings, load, present), settings);
  const surplus = present.length - settings.workersMax;
  const restful = present
    .filter((worker) => isIdlePastTimeout(worker, settings, now))
    .sort((a, b) => (a.idleSince ?? 0) - (b.idleSince ?? 0));
  const spare = Math.min(restful.length, present.length - target);
  // Above the maximum (it was lowered) those with nothing to do go first, then whoever is left, and those finish their job.
  const excess =
    surplus > spare
      ? present
          .filter((worker) => !restful.slice(0, spare).includes(worker))
          .sort((a, b) => Number(a.busy) - Number(b.busy))
          .slice(0, surplus - Math.max(0, spare))
      : [];
  return {
    start: Math.max(0, target - present.length),
    stop: [...restful.slice(0, Math.max(0, spare)), ...excess].map(({ id }) => id),
  };
}

function targetWorkerCount(
  { scalerType, scalerValue }: ScalerSettings,
  { waiting, overdue, inProgress }: EndpointLoad,
  present: readonly ScaledWorker[],
): number {
  const first = waiting > 0 ? 1 : 0;
  switch (scalerType) {
    case 'REQUEST_COUNT':
      return Math.max(first, Math.ceil((waiting + inProgress) / scalerValue));
    case 'QUEUE_DELAY': {
      const starting = present.filter(({ state }) => state === 'starting').length;
      const more = Math.max(0, overdue - starting);
      return more === 0 ? Math.max(first, busyCount(present)) : present.length + more;
    }
  }
}

function busyCount(workers: readonly ScaledWorker[]): number {
  return workers.filter(({ busy }) => busy).length;
}

function clamp(target: number, { workersMin, workersMax }: ScalerSettings): number {
  return Math.min(workersMax, Math.max(workersMin, target));
}

function isIdlePastTimeout(
  { state, busy, idleSince }: ScaledWorker,
  { idleTimeout }: ScalerSettings,
  now: number,
): boolean {
  return state === 'ready' && !busy && idleSince !== null && now - idleSince >= idleTimeout * 1000;
}
