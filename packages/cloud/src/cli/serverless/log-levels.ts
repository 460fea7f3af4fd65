import type { LogLineView } from './log-client.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** `DEBUG  | job | text`, as the Python SDK writes to a terminal. */
const TEXT_LEVEL = /^(TRACE|DEBUG|INFO|WARN|WARNING|ERROR)\s*\|/;
/** `{"level": "DEBUG", …}`, as the SDKs write elsewhere. */
const JSON_LEVEL = /^\{.*"level":\s*"(\w+)"/;

/** Whether a line is shown: lines of the SDKs from this level on, and all others. */
export function levelFilter(level: LogLevel): (line: LogLineView) => boolean {
  const lowest = LOG_LEVELS.indexOf(level);
  return ({ source, line }) => {
    const named = (TEXT_LEVEL.exec(line) ?? JSON_LEVEL.exec(line))?.[1];
    return source === 'system' || named === undefined || rankOf(named) >= lowest;
  };
}

function rankOf(name: string): number {
  const word = name.toLowerCase();
  if (word === 'trace') return 0;
  const rank = LOG_LEVELS.findIndex((level) => word.startsWith(level));
  return rank === -1 ? LOG_LEVELS.length : rank;
}
