import { engineChecks } from '../../app/engine-checks.ts';
import { runDoctorChecks } from '../doctor-checks.ts';
import type { CheckResult } from '../../support/check-result.ts';
import { fitToTerminal } from '../terminal-text.ts';
import { command } from '../command-definition.ts';
import { CliError } from '../cli.errors.ts';
import { serverOptions } from '../local-server.ts';

/** Checks that take longer say that they continue. */
const SLOW_MS = 1_000;

export const doctor = command({
  name: 'doctor',
  summary: 'Check that Berth can run here and that its server answers.',
  details: 'A check that is not ok says what to do. The exit code is 0 if all checks are ok.',
  options: serverOptions,
  async run(call) {
    const slow = setTimeout(() => {
      if (call.output.isInteractive)
        call.stderr.write('checking; a daemon or server that is busy gets a few seconds to answer\n');
    }, SLOW_MS);
    const results = await runDoctorChecks(call, engineChecks).finally(() => clearTimeout(slow));
    call.output.printTable(
      { checks: results },
      results,
      [
        { title: 'OK', value: (result) => (result.ok ? 'ok' : 'not') },
        { title: 'CHECK', value: (result) => result.check },
        {
          title: 'FOUND',
          value: foundAndRemedy,
        },
      ],
      '',
    );
    const wrong = results.filter((result) => !result.ok);
    if (wrong.length === 0) return;
    // A terminal may be too narrow for the cells.
    if (call.output.isInteractive)
      for (const one of wrong)
        call.output.printText(`\n${fitToTerminal(`${one.check}: ${foundAndRemedy(one)}`, call.stdout)}\n`);
    const verb = wrong.length === 1 ? 'is' : 'are';
    throw new CliError(`${wrong.length} of ${results.length} checks ${verb} not ok`);
  },
});

function foundAndRemedy({ found, remedy }: CheckResult): string {
  return remedy === undefined ? found : `${found}; ${remedy}`;
}
