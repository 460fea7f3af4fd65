import { pino } from 'pino';
import type { Logger } from 'pino';

export type Log = Logger;

export interface LogOptions {
  level: string;
  format: 'auto' | 'json' | 'text';
}

/** Names of logged fields that hold secrets. */
const SECRET_NAMES = new Set([
  'authorization',
  'apiKey',
  'api_key',
  'key',
  'password',
  'secret',
  'value',
  'env',
  'token',
]);
const MAX_DEPTH = 8;

/** Structured lines on standard error; standard output belongs to the program. */
export function createLog({ level, format }: LogOptions): Log {
  const asText = format === 'text' || (format === 'auto' && process.stderr.isTTY);
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        log: (logged) => withoutSecrets(logged) as Record<string, unknown>,
      },
      serializers: { err: (error: Error) => withoutSecrets(pino.stdSerializers.err(error)) },
    },
    asText
      ? { write: (line: string) => process.stderr.write(formatText(line)) }
      : pino.destination({ dest: 2, sync: true }),
  );
}

/** A copy without secrets at any depth. Binary data is only counted: it may hold anything. */
function withoutSecrets(logged: unknown, depth = 0): unknown {
  if (typeof logged !== 'object' || logged === null || logged instanceof Error || logged instanceof Date)
    return logged;
  if (ArrayBuffer.isView(logged)) return `(${logged.byteLength} bytes)`;
  if (depth === MAX_DEPTH) return '(more)';
  if (Array.isArray(logged)) return logged.map((item) => withoutSecrets(item, depth + 1));
  return Object.fromEntries(
    Object.entries(logged).map(([name, inner]) => [
      name,
      SECRET_NAMES.has(name) ? '(hidden)' : withoutSecrets(inner, depth + 1),
    ]),
  );
}

function formatText(line: string): string {
  const { level, time, msg, err, ...rest } = JSON.parse(line) as {
    level: string;
    time: string;
    msg?: string;
    err?: { stack?: string };
  } & Record<string, unknown>;
  const details = Object.keys(rest).length === 0 ? '' : ` ${JSON.stringify(rest)}`;
  return (
    `${time.slice(11, 19)} ${level.padEnd(5)} ` +
    `${msg ?? ''}${details}${err?.stack === undefined ? '' : `\n${err.stack}`}\n`
  );
}
