import { parseArgumentList } from '../support/config/argument-list.ts';
import type { Command, Option, Options } from './command-definition.ts';
import { UsageError } from './cli.errors.ts';
import type { OutputFormat } from './output.ts';

/** Options of every command. */
const commonOptions = {
  json: { kind: 'switch', description: 'Print JSON: the same as -o json.' },
  output: {
    kind: 'text',
    short: 'o',
    choices: ['table', 'json', 'yaml', 'name'],
    description:
      'How to print the result; name: only ids or names, one on each line. Default: BERTH_OUTPUT, or table.',
  },
  help: { kind: 'switch', description: 'Show this help.' },
} as const satisfies Options;

/** All options of a command, its own first. A command may redefine the description of a common option. */
export function allOptions(own: Options): Options {
  return { ...own, ...commonOptions, ...own };
}

/** The values of the common options. */
export interface CommonValues {
  json: boolean;
  output: OutputFormat | undefined;
}

export type ParsedCommandLine =
  | { help: true }
  | { help: false; words: Record<string, unknown>; options: Record<string, unknown> & CommonValues };

/** Parses the arguments after a command's name. --help works even if other arguments are invalid. */
export function parseCommandLine(
  { words: wordNames, options: ownOptions }: Command,
  argv: readonly string[],
): ParsedCommandLine {
  const options = allOptions(ownOptions);
  const names = Object.keys(wordNames);
  const rest = names.findIndex((name) => name.endsWith('...'));
  const kinds = Object.fromEntries(Object.entries(options).map(([name, option]) => [name, option.kind]));
  const read = parseArgumentList(
    rest === -1 ? expandShortOptions(argv, options) : argv,
    kinds,
    rest === -1 ? Infinity : rest,
  );
  if (read.flags['help'] === true) return { help: true };
  const [problem] = [
    ...read.problems,
    ...Object.entries(options).flatMap(([name, option]) => optionProblems(name, option, read.flags[name])),
  ];
  if (problem !== undefined) throw new UsageError(problem);
  const values = Object.fromEntries(
    Object.entries(options).map(([name, { kind }]) => [
      name,
      read.flags[name] ?? (kind === 'switch' ? false : kind === 'list' ? [] : undefined),
    ]),
  );
  return {
    help: false,
    words: bindPositionals(names, read.positionals),
    options: values as Record<string, unknown> & CommonValues,
  };
}

/** Expands `-f` to `--follow`. A command that passes arguments on to another program has no short options. */
function expandShortOptions(argv: readonly string[], options: Options): string[] {
  const shorts = new Map(
    Object.entries(options).flatMap(([name, { short }]) =>
      short === undefined ? [] : [[`-${short}`, `--${name}`]],
    ),
  );
  const end = argv.indexOf('--');
  return argv.map((word, index) => (end !== -1 && index > end ? word : (shorts.get(word) ?? word)));
}

function optionProblems(
  name: string,
  option: Option,
  value: string | string[] | boolean | undefined,
): string[] {
  if (value === undefined)
    return option.required
      ? [`--${name} is needed${option.choices === undefined ? '' : `: ${option.choices.join(', ')}`}`]
      : [];
  if (option.choices === undefined) return [];
  return [value]
    .flat()
    .flatMap((chosen) =>
      option.choices?.some((choice) => choice === chosen)
        ? []
        : [`--${name} is ${JSON.stringify(chosen)}; allowed: ${option.choices?.join(', ')}`],
    );
}

function bindPositionals(names: string[], given: string[]): Record<string, unknown> {
  const words: Record<string, unknown> = {};
  const left = [...given];
  for (const name of names) {
    if (name.endsWith('...')) words[name.slice(0, -3)] = left.splice(0);
    else if (name.endsWith('*')) words[name.slice(0, -1)] = left.splice(0);
    else if (name.endsWith('?')) words[name.slice(0, -1)] = left.shift();
    else if (left.length === 0) throw new UsageError(`${name} is missing`);
    else words[name] = left.shift();
  }
  if (left.length > 0) throw new UsageError(`unexpected argument ${JSON.stringify(left[0])}`);
  return words;
}
