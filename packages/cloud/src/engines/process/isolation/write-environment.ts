import type { ChildProcess } from 'node:child_process';
import type { Writable } from 'node:stream';
import { ENVIRONMENT_FD } from './account-command.ts';

/** Gives a command that runs as another user its environment. */
export function writeEnvironment(child: ChildProcess, script: string): void {
  const pipe = child.stdio[ENVIRONMENT_FD] as Writable;
  // The command may have ended before it read this.
  pipe.on('error', () => pipe.destroy());
  pipe.end(script, () => pipe.destroy());
}
