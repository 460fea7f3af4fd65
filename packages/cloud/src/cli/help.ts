import { wrapText } from '../support/config/wrap-text.ts';
import type { Command, Option } from './command-definition.ts';
import { allOptions } from './parse-command-line.ts';

const WIDTH = 80;

export function commandHelp({ name, summary, details, words, options }: Command): string {
  const all = Object.entries(allOptions(options));
  return sections([
    [usage({ name, words, options })],
    [...wrapText(summary, WIDTH), ...(details === undefined ? [] : ['', ...wrapText(details, WIDTH)])],
    entries(Object.entries(words).map(([word, description]) => [positionalName(word), description])),
    [
      'Options:',
      ...entries(
        all.map(([option, definition]) => [formatOption(option, definition), definition.description]),
      ),
    ],
  ]);
}

/** `Usage: berth key revoke ID [options]`; required options are listed. */
export function usage({ name, words, options }: Pick<Command, 'name' | 'words' | 'options'>): string {
  const wordList = Object.keys(words).map((word) =>
    /[?*]$|\.\.\.$/.test(word) ? `[${word.replace('?', '').replace('*', '...')}]` : word,
  );
  const needed = Object.entries(options).flatMap(([option, definition]) =>
    definition.required ? [formatOption(option, definition)] : [],
  );
  return ['Usage: berth', name, ...wordList, ...needed, '[options]'].join(' ');
}

export function programHelp(commands: readonly Command[]): string {
  const single = commands.filter((one) => !isOfGroup(one));
  const grouped = byGroup(commands.filter(isOfGroup));
  const list = (some: readonly Command[]): string[] =>
    entries(some.map(({ name, summary }) => [name, summary]));
  return sections([
    ['Usage: berth COMMAND [options]'],
    wrapText(
      'Berth is a self-hosted implementation of the RunPod API: pods and serverless endpoints on your own machines.',
      WIDTH,
    ),
    ['Commands:', ...list(single.length > 0 ? single : grouped)],
    single.length > 0 && grouped.length > 0
      ? ['Commands for one kind of thing ("berth KIND --help" lists them alone):', ...list(grouped)]
      : [],
    [
      ...wrapText(
        'Commands talk to the server at BERTH_URL with the key in BERTH_API_KEY, or else to the server ' +
          'on this machine, which they find by its data folder (--data, BERTH_DATA or ./.berth).',
        WIDTH,
      ),
      ...wrapText(
        '"berth COMMAND --help" shows the help of a command, "berth --version" the version.',
        WIDTH,
      ),
    ],
  ]);
}

const isOfGroup = ({ name }: Command): boolean => name.includes(' ');

/** Those of one group together, in the order in which the groups begin. */
function byGroup(commands: readonly Command[]): Command[] {
  return [...Map.groupBy(commands, ({ name }) => name.split(' ')[0]).values()].flat();
}

function formatOption(name: string, { kind, value, choices, short }: Option): string {
  const flag = short === undefined ? `--${name}` : `-${short}, --${name}`;
  return kind === 'switch' ? flag : `${flag} ${choices?.join('|') ?? value ?? 'VALUE'}`;
}

function positionalName(word: string): string {
  return word.replace(/(\?|\*|\.\.\.)$/, '');
}

/** Two columns; where the first is wide, the second starts on the next line. */
function entries(rows: [string, string][]): string[] {
  const column = Math.min(30, Math.max(0, ...rows.map(([left]) => left.length)));
  return rows.flatMap(([left, right]) => {
    const lines = wrapText(right, WIDTH - column - 4).map((line) => `${' '.repeat(column + 4)}${line}`);
    if (left.length > column) return [`  ${left}`, ...lines];
    return lines.map((line, index) => (index === 0 ? `  ${left.padEnd(column)}  ${line.trimStart()}` : line));
  });
}

function sections(parts: string[][]): string {
  return parts
    .filter((lines) => lines.length > 0)
    .map((lines) => `${lines.join('\n')}\n`)
    .join('\n');
}
