import type { Clock } from '../support/clock.ts';
import type { Environment } from '../support/config/config-from-environment.ts';

/** Where a command writes to. */
export interface OutputStream {
  readonly isTTY?: boolean;
  /** Of a terminal. */
  readonly columns?: number;
  readonly rows?: number;
  write(text: string | Uint8Array): unknown;
  on?(event: 'resize', listener: () => void): unknown;
  off?(event: 'resize', listener: () => void): unknown;
}

/** Where a command reads from. */
export interface InputStream extends AsyncIterable<Uint8Array | string> {
  readonly isTTY?: boolean;
  /** Of a terminal: every key as it is typed, with none that means something here. */
  setRawMode?(raw: boolean): unknown;
  /** Nothing more is read. */
  destroy?(): unknown;
}

/** What a command meets outside itself, so that a test can stand in for it. */
export interface CliContext {
  env: Environment;
  stdout: OutputStream;
  stderr: OutputStream;
  /** Opened on first use: a command that reads no input must not wait for its end. */
  stdin(): InputStream;
  clock: Clock;
  /** From now on the program exits when its output is closed. */
  exitOnClosedStdout(): void;
}
