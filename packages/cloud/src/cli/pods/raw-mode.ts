import { spawnSync } from 'node:child_process';
import type { InputStream } from '../cli-context.ts';

/**
 * Switches the terminal to raw mode and returns a function that restores it. Node's raw mode still translates
 * line feeds in the output, which breaks full-screen programs; `stty` turns that off, and leaving Node's raw
 * mode undoes both.
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
