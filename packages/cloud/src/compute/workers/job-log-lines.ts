import type { LogLine } from '../../domain/log-line.ts';

/** A log line that names another job is that job's; one that names none may belong to any that ran then. */
function isJobLogLine(line: string, jobId: string): boolean {
  if (!line.startsWith('{')) return true;
  try {
    const { requestId } = JSON.parse(line) as { requestId?: unknown };
    return typeof requestId !== 'string' || requestId === jobId;
  } catch {
    return true;
  }
}

/** What a worker wrote while it ran a job, as far as it can be attributed to that job. */
export async function* jobLogLines(
  lines: AsyncIterable<LogLine>,
  jobId: string,
  until: number | null,
): AsyncGenerator<LogLine> {
  for await (const line of lines) {
    if (until !== null && line.ts > until) return;
    if (isJobLogLine(line.line, jobId)) yield line;
  }
}
