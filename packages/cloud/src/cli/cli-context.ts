import type { Clock } from '../support/clock.ts';
import type { Environment } from '../support/config/config-from-environment.ts';

/** An output of a command. */
export interface OutputStream {
  readonly isTTY?: boolean;
  /** Set for a terminal. */
  readonly columns?: number;
  readonly rows?: number;
  /** Set for a terminal: whether it shows colours, and nobody turned them off (NO_COLOR). */
  hasColors?(): boolean;
  write(text: string | Uint8Array): unknown;
  on?(event: 'resize', listener: () => void): unknown;
  off?(event: 'resize', listener: () => void): unknown;
}

/** An input of a command. */
export interface InputStream extends AsyncIterable<Uint8Array | string> {
  readonly isTTY?: boolean;
  /** Terminals only: every key is passed on as it is typed, control keys too. */
  setRawMode?(raw: boolean): unknown;
  /** Stops reading. */
  destroy?(): unknown;
}

/** How the user calls this program, for the commands that it tells them to type: npx leaves a trace. */
export function programName(env: Environment): string {
  return env['npm_command'] === 'exec' ? 'npx berth' : 'berth';
}

/** The environment of a command, which tests replace. */
export interface CliContext {
  env: Environment;
  stdout: OutputStream;
  stderr: OutputStream;
  /** Opened on first use: a command that reads no input must not wait for its end. */
  stdin(): InputStream;
  clock: Clock;
  /** Aborted by the first Ctrl-C from now on; without this call Ctrl-C ends the program. */
  onInterrupt?(): AbortSignal;
  /** From now on the program exits when its output is closed. */
  exitOnClosedStdout(): void;
}
