import type { Clock } from '../support/clock.ts';
import type { Environment } from '../support/config/from-environment.ts';

/** Where a command writes to. */
export interface Writable {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** What a command meets outside itself, so that a test can stand in for it. */
export interface Surroundings {
  env: Environment;
  stdout: Writable;
  stderr: Writable;
  clock: Clock;
  /** From now on, the program ends when nobody reads its output any more. */
  endWithReader(): void;
}
