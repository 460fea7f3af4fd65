import { setTimeout as pause } from 'node:timers/promises';
import type { Options } from './command-definition.ts';
import type { Output } from './output.ts';

const INTERVAL_MS = 2_000;

export const watchOption = {
  watch: { kind: 'switch', short: 'w', description: 'Show it again every 2 seconds, until Ctrl-C.' },
} as const satisfies Options;

/** Shows something once, or with --watch again and again. */
export async function repeatWhileWatched(
  { options, output }: { options: { watch: boolean }; output: Output },
  show: () => Promise<void>,
): Promise<void> {
  await show();
  while (options.watch) {
    await pause(INTERVAL_MS);
    output.startAgain();
    await show();
  }
}
