import { setTimeout as pause } from 'node:timers/promises';
import type { CliContext } from './cli-context.ts';
import { CommandExit, EXIT_INTERRUPTED } from './cli.errors.ts';
import { writeLine } from './terminal-text.ts';

export type Pause = (ms: number) => Promise<void>;

/** Between two requests to the server: Ctrl-C ends the command, and says that the server continues. */
export function interruptiblePause(
  { onInterrupt, stderr }: Pick<CliContext, 'onInterrupt' | 'stderr'>,
  goesOn: string,
): Pause {
  const interrupt = onInterrupt?.();
  return async (ms) => {
    try {
      await pause(ms, undefined, { signal: interrupt });
    } catch (error) {
      if (interrupt?.aborted !== true) throw error;
      writeLine(stderr, `berth: ${goesOn}`);
      throw new CommandExit(EXIT_INTERRUPTED);
    }
  };
}
