import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TerminalSize } from '../instance.ts';

const PYTHON_SCRIPT = fileURLToPath(new URL('terminal.py', import.meta.url));

/** The program that provides pseudo-terminals: Node has no API for them. */
export type PtyProgram = 'script' | 'python3';

/** Undefined if there is none. `stty` is needed to resize terminals. */
export function findPtyProgram(path = process.env['PATH'] ?? ''): PtyProgram | undefined {
  if (!isExecutable('stty', path)) return undefined;
  return (['script', 'python3'] as const).find((ptyProgram) => isExecutable(ptyProgram, path));
}

/**
 * Runs the command in a terminal. It first writes the terminal's name to descriptor 3; the name is needed to
 * resize it.
 */
export function ptyCommand(argv: readonly string[], size: TerminalSize, ptyProgram: PtyProgram): string[] {
  if (ptyProgram === 'python3')
    return ['python3', '-S', '-E', PYTHON_SCRIPT, String(size.columns), String(size.rows), ...argv];
  const command = `stty ${sttySizeArguments(size).join(' ')}; tty >&3; exec 3>&-; exec ${argv.map(quote).join(' ')}`;
  return ['script', '--quiet', '--return', '--flush', '--command', command, '/dev/null'];
}

export function sttySizeArguments({ columns, rows }: TerminalSize): string[] {
  return ['cols', String(columns), 'rows', String(rows)];
}

function quote(argument: string): string {
  return `'${argument.replaceAll("'", `'\\''`)}'`;
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
