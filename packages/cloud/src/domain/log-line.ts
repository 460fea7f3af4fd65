/** `container`: what the instance wrote. `system`: what Berth wrote about it. */
export type LogSource = 'container' | 'system';

/** The start of the system line that says that an instance was ended for lack of disk space. */
export const NO_SPACE = 'No space: ';

export interface LogLine {
  /** Milliseconds since 1970; never smaller than that of an earlier line. */
  ts: number;
  /** Counts the lines of one instance from 1, also those that were dropped. */
  seq: number;
  source: LogSource;
  line: string;
}

/** Strictly after this line, or after everything of this moment. */
export type LogPosition = { seq: number } | { ts: number };

export interface LogQuery {
  after?: LogPosition;
  /** Only lines before this one. Nothing is followed then. */
  before?: { seq: number };
  /** The last lines only, of those that are asked for. Does not count where `after` is given. */
  tail?: number;
  /** Go on with what is yet to come. */
  follow?: boolean;
  source?: LogSource;
}
