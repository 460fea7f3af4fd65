import { parseOptions, USAGE } from './conformance-options.ts';
import { outcomeTable } from './conformance-report.ts';
import type { DeploymentOutcomes } from './conformance-report.ts';
import { runChecks, selectChecks } from './all-checks.ts';

const options = parseOptions(process.argv.slice(2));
if (options === undefined) {
  process.stderr.write(USAGE);
  process.exit(2);
}
const checks = selectChecks(options.only);
if (checks.length === 0) {
  process.stderr.write(`no check has the word ${JSON.stringify(options.only)}\n`);
  process.exit(2);
}
const columns: DeploymentOutcomes[] = [];
for (const [index, site] of options.deployments.entries()) {
  columns.push({
    title: options.deployments.length === 1 ? 'result' : index === 0 ? 'first' : 'second',
    outcomes: await runChecks(site, checks),
  });
}
process.stdout.write(
  options.json
    ? `${JSON.stringify(
        checks.map(({ group, name }, at) => ({
          group,
          name,
          outcomes: columns.map(({ outcomes }) => outcomes[at]),
        })),
        null,
        2,
      )}\n`
    : `${outcomeTable(checks, columns)}\n`,
);
process.exitCode = columns.some(({ outcomes }) => outcomes.some(({ result }) => result === 'failed')) ? 1 : 0;
