import type { ScalerType } from '../records.ts';

/** The scaling settings of an endpoint. */
export interface ScalerSettings {
  workersMin: number;
  workersMax: number;
  /** Seconds. */
  idleTimeout: number;
  scalerType: ScalerType;
  /** Seconds of queue delay, or requests per worker. */
  scalerValue: number;
}

/** The load of an endpoint. Jobs of low priority start no workers and are not counted. */
export interface EndpointLoad {
  waiting: number;
  /** Jobs that have waited longer than the scaler's delay. */
  overdue: number;
  inProgress: number;
}

export interface ScaledWorker {
  id: string;
  /** Starting: no heartbeat yet. Leaving: it is being drained and no longer counts. */
  state: 'starting' | 'ready' | 'leaving';
  busy: boolean;
  /** Null while it is busy or starting. */
  idleSince: number | null;
}

export interface ScalingDecision {
  start: number;
  /** Ids of workers to stop, the longest idle first. */
  stop: string[];
}

/**
 * How many workers to start and which to stop.
 *
 * By request count, the target is the number of workers that the requests need. By queue delay,
 * every overdue job gets a worker, minus those that are starting: a slow start causes no further
 * starts. With either, an endpoint without workers starts one for the first job at once. The scaler
 * goes to the target in one step. A worker is stopped only after its idle timeout, so that a varying
 * load does not start and stop workers; a starting worker is never stopped for being idle.
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
  const idle = present
    .filter((worker) => isIdlePastTimeout(worker, settings, now))
    .sort((a, b) => (a.idleSince ?? 0) - (b.idleSince ?? 0));
  const spare = Math.min(idle.length, present.length - target);
  // Above a lowered maximum, idle workers are stopped first, then others, which finish their jobs.
  const excess =
    surplus > spare
      ? present
          .filter((worker) => !idle.slice(0, spare).includes(worker))
          .sort((a, b) => Number(a.busy) - Number(b.busy))
          .slice(0, surplus - Math.max(0, spare))
      : [];
  return {
    start: Math.max(0, target - present.length),
    stop: [...idle.slice(0, Math.max(0, spare)), ...excess].map(({ id }) => id),
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
