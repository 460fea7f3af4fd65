import { optionsOf, USAGE } from './options.ts';
import { table } from './report.ts';
import type { Column } from './report.ts';
import { outcomesAt, selected } from './suite.ts';

const options = optionsOf(process.argv.slice(2));
if (options === undefined) {
  process.stderr.write(USAGE);
  process.exit(2);
}
const checks = selected(options.only);
if (checks.length === 0) {
  process.stderr.write(`no check has the word ${JSON.stringify(options.only)}\n`);
  process.exit(2);
}
const columns: Column[] = [];
for (const [index, site] of options.sites.entries()) {
  columns.push({
    title: options.sites.length === 1 ? 'result' : index === 0 ? 'first' : 'second',
    outcomes: await outcomesAt(site, checks),
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
    : `${table(checks, columns)}\n`,
);
process.exitCode = columns.some(({ outcomes }) => outcomes.some(({ result }) => result === 'failed')) ? 1 : 0;
