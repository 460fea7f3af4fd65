/** Where nothing changes while somebody waits, how it stands is said again after this. */
export const REMINDER_MS = 15_000;

/** What takes no longer is not announced. */
const LONG_WAIT_MS = 1_500;

/** While something runs that may take long: says what it is at, each step once and slow ones again. */
export async function sayWhile<T>(
  say: (line: string) => void,
  state: () => string,
  work: () => Promise<T>,
): Promise<T> {
  const report = reportChanges(say);
  const timer = setInterval(() => report(state()), LONG_WAIT_MS);
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
