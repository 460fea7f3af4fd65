/** A state that does not change is printed again after this. */
export const REMINDER_MS = 15_000;

/** Work that takes less prints no progress. */
const FIRST_PROGRESS_MS = 1_500;

/** Prints the progress of work that takes long: each state once, and slow ones again. */
export async function printProgress<T>(
  say: (line: string) => void,
  state: () => string,
  work: () => Promise<T>,
): Promise<T> {
  const report = reportChanges(say);
  const timer = setInterval(() => report(state()), FIRST_PROGRESS_MS);
  return work().finally(() => clearInterval(timer));
}

/** Says a state when it changes, and again after a while: nobody waits in silence. */
export function reportChanges(
  say: (line: string) => void,
  now: () => number = () => performance.now(),
): (state: string) => void {
  let shown: string | undefined;
  let saidAt = 0;
  return (state) => {
    if (state === shown && now() - saidAt < REMINDER_MS) return;
    say(state === shown ? `still: ${state}` : state);
    [shown, saidAt] = [state, now()];
  };
}
