import { spawnSync } from 'node:child_process';
import type { InputStream } from '../cli-context.ts';

/**
 * From now on keys go through as they are typed, and what comes is shown as it comes. Answers the
 * way back. Node's own raw mode still makes a new line of every line feed, which a program that
 * draws on the whole screen does not mean; `stty` ends that, and Node's way back undoes both.
 */
export function enterRawMode(stdin: InputStream): () => void {
  stdin.setRawMode?.(true);
  if (stdin.setRawMode !== undefined)
    spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
  return () => {
    if (stdin.setRawMode !== undefined)
      spawnSync('stty', ['opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
    stdin.setRawMode?.(false);
  };
}
