import type { Worker } from '../domain/endpoints/worker-record.ts';

const START_PHASES = ['image', 'start', 'connect', 'total'] as const;
export type StartPhase = (typeof START_PHASES)[number];

/**
 * How long each phase of a worker's start took, in milliseconds, as far as it is known: its image, its
 * process, its first sign of life.
 */
export function startPhaseDurations({
  createdAt,
  imageReadyAt,
  startedAt,
  readyAt,
}: Pick<Worker, 'createdAt' | 'imageReadyAt' | 'startedAt' | 'readyAt'>): [StartPhase, number][] {
  const between = (phase: StartPhase, from: number | null, to: number | null): [StartPhase, number][] =>
    from === null || to === null ? [] : [[phase, Math.max(0, to - from)]];
  return [
    ...between('image', createdAt, imageReadyAt),
    ...between('start', imageReadyAt, startedAt),
    ...between('connect', startedAt, readyAt),
    ...between('total', createdAt, readyAt),
  ];
}
