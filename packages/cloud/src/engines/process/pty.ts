import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TerminalSize } from '../instance.ts';

const PYTHON_SCRIPT = fileURLToPath(new URL('terminal.py', import.meta.url));

/** How this machine makes terminals: Node has none of its own. */
export type PtyProgram = 'script' | 'python3';

/** Undefined where it makes none. `stty` is what resizes them. */
export function findPtyProgram(path = process.env['PATH'] ?? ''): PtyProgram | undefined {
  if (!isExecutable('stty', path)) return undefined;
  return (['script', 'python3'] as const).find((maker) => isExecutable(maker, path));
}

/** The command in a terminal. The first line on descriptor 3 is the terminal's name, by which it is resized. */
export function ptyCommand(argv: readonly string[], size: TerminalSize, maker: PtyProgram): string[] {
  if (maker === 'python3')
    return ['python3', '-S', '-E', PYTHON_SCRIPT, String(size.columns), String(size.rows), ...argv];
  const command = `stty ${sttySizeArguments(size).join(' ')}; tty >&3; exec 3>&-; exec ${argv.map(quote).join(' ')}`;
  return ['script', '--quiet', '--return', '--flush', '--command', command, '/dev/null'];
}

/** For `stty`. */
export function sttySizeArguments({ columns, rows }: TerminalSize): string[] {
  return ['cols', String(columns), 'rows', String(rows)];
}

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

function isExecutable(program: string, path: string): boolean {
  return path.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
