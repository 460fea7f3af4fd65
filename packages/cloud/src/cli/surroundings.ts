import type { Clock } from '../support/clock.ts';
import type { Environment } from '../support/config/from-environment.ts';

/** Where a command writes to. */
export interface Writable {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** Where a command reads from. */
export interface Input extends AsyncIterable<Uint8Array | string> {
  readonly isTTY?: boolean;
}

/** What a command meets outside itself, so that a test can stand in for it. */
export interface Surroundings {
  env: Environment;
  stdout: Writable;
  stderr: Writable;
  /** Opened when it is asked for: a program that reads nothing shall not wait for the end of it. */
  stdin(): Input;
  clock: Clock;
  /** From now on, the program ends when nobody reads its output any more. */
  endWithReader(): void;
}
