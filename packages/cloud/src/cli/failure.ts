/** The arguments make no sense: exit code 2. */
export class UsageError extends Error {}

/** What was asked could not be done, for a reason that the message gives in full: exit code 1. */
export class Failure extends Error {}
