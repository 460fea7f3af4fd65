/** The arguments make no sense: exit code 2. */
export class UsageError extends Error {}

/** A command that the user ran through this one ended with this exit code. Nothing more is printed. */
export class CommandExit extends Error {
  readonly code: number;

  constructor(code: number) {
    super(`ended with exit code ${code}`);
    this.code = code;
  }
}

/** Exit codes beside 0 (success), 1 (failure) and 2 (invalid arguments). */
export const EXIT_TIMED_OUT = 124;
export const EXIT_INTERRUPTED = 130;

/** The command failed; the message gives the full reason: exit code 1. */
export class CliError extends Error {}

/** Why a file that was named cannot be read. */
export function unreadable(file: string, cause: unknown, kind = 'file'): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  if (code === 'ENOENT') return `there is no ${kind} ${file}`;
  if (code === 'EISDIR') return `${file} is a folder, not a file`;
  if (code === 'EACCES') return `${file} cannot be read: no permission`;
  return `${file} cannot be read (${code ?? message})`;
}
