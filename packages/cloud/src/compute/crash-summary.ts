import type { InstanceEngine } from '../engines/engine.ts';
import { NO_SPACE } from '../domain/log-line.ts';
import { CRASH_LOG_LINES } from './reconcile-settings.ts';

/** The system lines about an end are among the last so many. */
const END_LOG_LINES = 5;

/** How an instance ended, in words: `it ended with code 1`, `it was ended by SIGKILL`. */
export function describeExit({
  exitCode,
  signal,
}: {
  exitCode: number | null;
  signal: string | null;
}): string {
  return signal === null ? `it ended with code ${exitCode ?? 'unknown'}` : `it was ended by ${signal}`;
}

/** The crash summary of an instance, from the end of its log, as far as that can be read. */
export async function readCrashSummary(engine: Pick<InstanceEngine, 'logs'>, id: string): Promise<string> {
  const lines: string[] = [];
  try {
    for await (const { line } of engine.logs(id, { tail: END_LOG_LINES, source: 'system' }))
      if (line.startsWith(NO_SPACE)) return line;
    for await (const { line } of engine.logs(id, { tail: CRASH_LOG_LINES, source: 'container' }))
      lines.push(line);
  } catch {
    // Its machine may not answer any more. That it ended is known all the same.
  }
  return crashSummary(lines);
}

/**
 * The log line that best explains why a program ended. Python prints the exception last. Node prints
 * the error first, then the stack, and its version last.
 */
export function crashSummary(lines: readonly string[]): string {
  const candidates = lines
    .flatMap((line) => messageOf(line).split('\n'))
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^Node\.js v\d/.test(line) && !/^at .*[:)]/.test(line) && line !== '}');
  return (
    candidates.findLast((line) => /^(Uncaught )?[\w.]*(Error|Exception|Exit|Interrupt)\b/.test(line)) ??
    candidates.at(-1) ??
    ''
  );
}

/** The public worker SDKs log in JSON: `{"requestId": null, "message": "...", "level": "ERROR"}`. */
function messageOf(line: string): string {
  if (!line.startsWith('{"requestId":')) return line;
  try {
    const { message } = JSON.parse(line) as { message?: unknown };
    return typeof message === 'string' ? message : line;
  } catch {
    // The line is cut off, or the SDK did not write it.
    return line;
  }
}
