/** The phases of a worker's start as the server shows them: a time for each that is over. */
export interface StartPhasesView {
  scheduledAt: string | null;
  imageReadyAt: string | null;
  startedAt: string | null;
  connectedAt: string | null;
  firstJobAt: string | null;
}

/** How each phase is called by what it waits for. */
const NAMES = [
  ['imageReadyAt', 'image'],
  ['startedAt', 'process'],
  ['connectedAt', 'load'],
  ['firstJobAt', 'first job'],
] as const;

/** How long each phase took: `image 12.3 s, process 8 ms, load 410 ms, first job 3 ms`. */
export function formatStartPhases(phases: StartPhasesView): string {
  let before = phases.scheduledAt;
  const parts: string[] = [];
  for (const [phase, name] of NAMES) {
    const at = phases[phase];
    if (at === null || before === null) continue;
    parts.push(`${name} ${formatDuration(Date.parse(at) - Date.parse(before))}`);
    before = at;
  }
  return parts.join(', ');
}

function formatDuration(milliseconds: number): string {
  const shown = Math.max(0, milliseconds);
  return shown < 1000 ? `${shown} ms` : `${(shown / 1000).toFixed(1)} s`;
}
