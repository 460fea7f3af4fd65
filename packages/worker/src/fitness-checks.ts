import { errorMessage, errorType } from './error-report.ts';
import type { FitnessCheck } from './worker-options.ts';

const LONGEST_REASON = 256;

/** A worker that must not take jobs. */
export class UnhealthyError extends Error {
  readonly check: string;
  readonly reason: string;

  constructor(check: string, reason: string, cause: unknown) {
    super(`the fitness check ${check} failed: ${reason}`, { cause });
    this.name = 'UnhealthyError';
    this.check = check;
    this.reason = reason;
  }
}

/** Runs the checks in order. The first one that throws ends it. */
export async function runFitnessChecks(checks: readonly FitnessCheck[]): Promise<void> {
  for (const [index, check] of checks.entries()) {
    try {
      await check();
    } catch (error) {
      throw new UnhealthyError(
        check.name === '' ? `check ${index + 1}` : check.name,
        `${errorType(error)}: ${errorMessage(error)}`.slice(0, LONGEST_REASON),
        error,
      );
    }
  }
}
