import type { CliContext } from './cli-context.ts';
import { CommandExit, EXIT_INTERRUPTED } from './cli.errors.ts';

const CTRL_C = '\u0003';
const BACKSPACE = /[\b\u007f]/;

/** Reads a line from the terminal without showing it. */
export async function readSecretLine(
  question: string,
  { stdin, stderr }: Pick<CliContext, 'stdin' | 'stderr'>,
): Promise<string> {
  const input = stdin();
  stderr.write(question);
  input.setRawMode?.(true);
  let line = '';
  try {
    for await (const part of input)
      for (const character of Buffer.from(part).toString('utf8')) {
        if (character === CTRL_C) throw new CommandExit(EXIT_INTERRUPTED);
        if (character === '\r' || character === '\n') return line;
        line = BACKSPACE.test(character) ? line.slice(0, -1) : line + character;
      }
    return line;
  } finally {
    input.setRawMode?.(false);
    stderr.write('\n');
  }
}
