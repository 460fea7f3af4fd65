/** Where nothing changes while somebody waits, how it stands is said again after this. */
export const REMINDER_MS = 15_000;

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
