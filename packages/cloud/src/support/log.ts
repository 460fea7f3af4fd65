import { pino } from 'pino';
import type { Logger } from 'pino';

export type Log = Logger;

export interface LogOptions {
  level: string;
  format: 'auto' | 'json' | 'text';
}

/** Nothing that opens a door is written down, however far inside a logged object it stands, up to DEPTH. */
const REDACTED = ['authorization', 'apiKey', 'api_key', 'key', 'password', 'secret', 'value', 'env', 'token'];
const DEPTH = 4;

/** Structured lines on standard error, so that standard output stays the program's own. */
export function createLog({ level, format }: LogOptions): Log {
  const asText = format === 'text' || (format === 'auto' && process.stderr.isTTY);
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: REDACTED.flatMap((name) => Array.from({ length: DEPTH }, (_, level) => '*.'.repeat(level) + name)), censor: '(hidden)' },
    },
    asText ? { write: (line: string) => process.stderr.write(forPeople(line)) } : pino.destination({ dest: 2, sync: true }),
  );
}

function forPeople(line: string): string {
  const { level, time, msg, err, ...rest } = JSON.parse(line) as { level: string; time: string; msg?: string; err?: { stack?: string } } & Record<string, unknown>;
  const details = Object.keys(rest).length === 0 ? '' : ` ${JSON.stringify(rest)}`;
  return `${time.slice(11, 19)} ${level.padEnd(5)} ${msg ?? ''}${details}${err?.stack === undefined ? '' : `\n${err.stack}`}\n`;
}
