import type { InstanceEngine } from '../../engines/engine.ts';
import type { Execution, ExecutionOptions } from '../../engines/instance.ts';
import { BerthError, ruleError } from '../../support/errors.ts';

/** The first that there is. */
const SHELLS = ['bash', 'sh'];

/** Runs the shell that an instance has. */
export async function openShell(
  engine: Pick<InstanceEngine, 'exec'>,
  id: string,
  options: ExecutionOptions,
): Promise<{ execution: Execution; argv: readonly string[] }> {
  for (const shell of SHELLS) {
    try {
      return { execution: await engine.exec(id, [shell], options), argv: [shell] };
    } catch (error) {
      // Not there. Whatever else is wrong is told.
      if (!(error instanceof BerthError) || error.code !== 'rule') throw error;
    }
  }
  throw ruleError(
    `there is no shell in ${id}: neither ${SHELLS.join(' nor ')} was found in its image; name a command that it has`,
  );
}
