import type { InstanceEngine } from '../../engines/engine.ts';
import type { Execution, ExecutionOptions } from '../../engines/instance.ts';
import { BerthError, ruleError } from '../../support/errors.ts';

/** The first one that exists is used. */
const SHELLS = ['bash', 'sh'];

/** Starts the first available shell in an instance. */
export async function openShell(
  engine: Pick<InstanceEngine, 'exec'>,
  id: string,
  options: ExecutionOptions,
): Promise<{ execution: Execution; argv: readonly string[] }> {
  for (const shell of SHELLS) {
    try {
      return { execution: await engine.exec(id, [shell], options), argv: [shell] };
    } catch (error) {
      // This shell does not exist: try the next. Other errors are passed on.
      if (!(error instanceof BerthError) || error.code !== 'rule') throw error;
    }
  }
  throw ruleError(
    `there is no shell in ${id}: neither ${SHELLS.join(' nor ')} was found in its image; name a command that it has`,
  );
}
