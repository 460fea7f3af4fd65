import { parseArgs } from 'node:util';
import { didYouMean } from './did-you-mean.ts';

/** text: one value, the last one counts. list: one value each time. switch: no value. */
export type FlagType = 'text' | 'list' | 'switch';

export interface ParsedArguments {
  flags: Record<string, string | string[] | boolean>;
  positionals: string[];
  /** One line per invalid argument. */
  problems: string[];
}

/**
 * Reads an argument list. `wordsBeforeRest` is for commands that run another command: after that many
 * positional arguments, everything is passed on unchanged, including flags.
 */
export function parseArgumentList(
  argv: readonly string[],
  kinds: Readonly<Record<string, FlagType>>,
  wordsBeforeRest = Infinity,
): ParsedArguments {
  const options = Object.fromEntries(
    Object.entries(kinds).map(([name, kind]) => [
      name,
      {
        type: kind === 'switch' ? ('boolean' as const) : ('string' as const),
        ...(name === 'help' ? { short: 'h' } : {}),
      },
    ]),
  );
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, tokens: true });
  const read: ParsedArguments = { flags: {}, positionals: [], problems: [] };
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue;
    if (token.kind === 'positional') {
      if (read.positionals.length >= wordsBeforeRest) {
        read.positionals.push(...argv.slice(token.index));
        break;
      }
      read.positionals.push(token.value);
      continue;
    }
    const kind = Object.hasOwn(kinds, token.name) ? kinds[token.name] : undefined;
    const known = Object.keys(kinds).map((name) => `--${name}`);
    if (kind === undefined)
      read.problems.push(
        `unknown option ${token.rawName}${didYouMean(token.rawName, known, `; there is ${known.join(' ')}`)}`,
      );
    else if (kind === 'switch') {
      if (token.value === undefined) read.flags[token.name] = true;
      else read.problems.push(`${token.rawName} takes no value`);
    } else if (token.value === undefined || (!token.inlineValue && /^-./.test(token.value)))
      read.problems.push(`${token.rawName} needs a value`);
    else if (kind === 'text') read.flags[token.name] = token.value;
    else read.flags[token.name] = [...((read.flags[token.name] as string[] | undefined) ?? []), token.value];
  }
  return read;
}
