import type { ConformanceCheck, Outcome } from './conformance-check.ts';

/** What came of every check at one deployment. */
export interface DeploymentOutcomes {
  title: string;
  outcomes: readonly Outcome[];
}

const WORDS: Record<Outcome['result'], string> = { passed: 'ok', failed: 'FAILED', skipped: '-' };
const CELL = 8;

/** A line for each check, a column for each deployment; reasons stand below, the sums at the end. */
export function outcomeTable(
  checks: readonly ConformanceCheck[],
  columns: readonly DeploymentOutcomes[],
): string {
  const width = Math.max(...checks.map(({ name }) => name.length)) + 2;
  const lines: string[] = [];
  for (const [index, { group, name }] of checks.entries()) {
    if (checks[index - 1]?.group !== group)
      lines.push(
        '',
        `${group.padEnd(width + 2)}${columns.map(({ title }) => title.padEnd(CELL)).join(' ')}`.trimEnd(),
      );
    const outcomes = columns
      .map(({ outcomes: all }) => all[index])
      .filter((outcome) => outcome !== undefined);
    lines.push(
      `  ${name.padEnd(width)}${outcomes.map(({ result }) => WORDS[result].padEnd(CELL)).join(' ')}`.trimEnd(),
    );
    for (const [at, outcome] of outcomes.entries()) {
      if (outcome.result !== 'passed')
        lines.push(`      ${columns.length > 1 ? `${columns[at]?.title}: ` : ''}${outcome.reason}`);
    }
  }
  lines.push('', ...columns.map(({ title, outcomes }) => `${title}: ${sums(outcomes)}`));
  return lines.join('\n').trimStart();
}

function sums(outcomes: readonly Outcome[]): string {
  const count = (result: Outcome['result']): number =>
    outcomes.filter((outcome) => outcome.result === result).length;
  return `${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} skipped`;
}
