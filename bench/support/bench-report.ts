import { median, worst } from './statistics.ts';

export interface Figures {
  name: string;
  values: number[];
}

export interface Unit {
  name: string;
  better: 'higher' | 'lower';
  digits?: number;
}

export const PER_SECOND: Unit = { name: '/s', better: 'higher' };
export const MILLISECONDS: Unit = { name: ' ms', better: 'lower', digits: 2 };
export const MICROSECONDS: Unit = { name: ' µs', better: 'lower' };

export interface Bar {
  part: string;
  what: string;
  bar: string;
  measured: string;
  /** Undefined where it could not be measured. */
  met: boolean | undefined;
}

/** What was measured, said at once and gathered for the table at the end. */
export class Report {
  readonly bars: Bar[] = [];
  readonly missing = new Set<string>();

  print(text: string): void {
    process.stdout.write(`${text}\n`);
  }

  part(name: string, what: string): void {
    this.print(`\n## ${name}: ${what}`);
  }

  /** A table of sides: the median and the worst of the rounds. */
  figures(title: string, unit: Unit, sides: readonly Figures[]): void {
    this.print(`\n${title}`);
    const rows = sides.map(({ name, values }) => [
      name,
      formatValue(median(values), unit),
      formatValue(worst(values, unit.better), unit),
      values.map((value) => formatValue(value, { ...unit, name: '' })).join(' '),
    ]);
    this.print(table(['', 'median', 'worst', 'rounds'], rows));
  }

  bar(bar: Bar): void {
    this.bars.push(bar);
  }

  /** A tool is not here: says how to get it and what does not run without it. */
  missingTool(tool: string, how: string, without: string): void {
    this.missing.add(`${tool} is missing (${how}): ${without} did not run`);
  }

  end(): void {
    if (this.missing.size > 0) this.print(`\n${[...this.missing].join('\n')}`);
    this.print('\n## Bars\n');
    this.print(
      table(
        ['part', 'what', 'bar', 'measured', 'met'],
        this.bars.map(({ part, what, bar, measured, met }) => [
          part,
          what,
          bar,
          measured,
          met === undefined ? 'not measured' : met ? 'yes' : 'NO',
        ]),
      ),
    );
  }
}

export function formatValue(value: number, { name, digits = 0 }: Pick<Unit, 'name' | 'digits'>): string {
  return `${value.toLocaleString('en-US', { maximumFractionDigits: digits, minimumFractionDigits: digits })}${name}`;
}

/**
 * How many times `other` goes into `one`: the median over the rounds. Each is compared with what came right
 * before or after it, as the machine is another one a minute later.
 */
export function ratio(one: readonly number[], other: readonly number[]): number {
  return median(one.map((value, round) => value / (other[round] ?? Number.NaN)));
}

function table(head: string[], rows: string[][]): string {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  const line = (cells: string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}
