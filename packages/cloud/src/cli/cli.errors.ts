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

/** What was asked could not be done, for a reason that the message gives in full: exit code 1. */
export class CliError extends Error {}
