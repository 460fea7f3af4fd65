import type { StartPhases } from '../../api/types.ts';

export interface Phase {
  label: string;
  /** Milliseconds; undefined if it is not over. */
  took: number | undefined;
}

const STEPS: [keyof StartPhases, string][] = [
  ['imageReadyAt', 'Image'],
  ['startedAt', 'Container'],
  ['connectedAt', 'Program until it connects'],
  ['firstJobAt', 'First job'],
];

/** How long each part of a worker's start took. Parts that are missing are left out. */
export function phasesOf(phases: StartPhases | null | undefined): Phase[] {
  let before = timeOf(phases?.scheduledAt);
  if (before === undefined) return [];
  const result: Phase[] = [];
  for (const [name, label] of STEPS) {
    const at = timeOf(phases?.[name]);
    result.push({ label, took: at === undefined ? undefined : Math.max(0, at - before) });
    if (at === undefined) break;
    before = at;
  }
  return result;
}

function timeOf(text: string | null | undefined): number | undefined {
  return text === null || text === undefined ? undefined : Date.parse(text);
}
