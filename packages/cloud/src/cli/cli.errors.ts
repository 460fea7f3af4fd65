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

/** The command failed; the message gives the full reason: exit code 1. */
export class CliError extends Error {}
