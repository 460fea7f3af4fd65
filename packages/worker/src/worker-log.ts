const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR'] as const;
export type LogLevel = (typeof LEVELS)[number];

/** The platform shows lines up to this length; a longer message is cut in the middle. */
const MAX_MESSAGE_LENGTH = 4_096;

/**
 * Writes lines to standard output. On a platform they are JSON, and lines of a job carry its id, so that they
 * can be found by job; on a terminal they are text.
 */
export class WorkerLog {
  readonly #minimumLevel: number;
  readonly #asJson: boolean;
  readonly #write: (line: string) => void;

  constructor(
    variables: Readonly<Record<string, string | undefined>>,
    write: (line: string) => void = (line) => void process.stdout.write(line),
  ) {
    const wanted = (variables['RUNPOD_LOG_LEVEL'] ?? variables['RUNPOD_DEBUG_LEVEL'] ?? 'INFO').toUpperCase();
    const least = LEVELS.findIndex((level) => level === wanted);
    this.#minimumLevel = wanted === 'NOTSET' ? 0 : least < 0 ? LEVELS.indexOf('INFO') : least;
    this.#asJson = variables['RUNPOD_ENDPOINT_ID'] !== undefined;
    this.#write = write;
  }

  info(message: string, jobId?: string): void {
    this.#line('INFO', message, jobId);
  }

  warn(message: string, jobId?: string): void {
    this.#line('WARN', message, jobId);
  }

  error(message: string, jobId?: string): void {
    this.#line('ERROR', message, jobId);
  }

  #line(level: LogLevel, message: string, jobId: string | undefined): void {
    if (LEVELS.indexOf(level) < this.#minimumLevel) return;
    const shown = shorten(message);
    this.#write(
      this.#asJson
        ? `${JSON.stringify({ requestId: jobId ?? null, message: shown, level })}\n`
        : `${level.padEnd(5)} | ${jobId === undefined ? '' : `${jobId} | `}${shown}\n`,
    );
  }
}

function shorten(message: string): string {
  if (message.length <= MAX_MESSAGE_LENGTH) return message;
  const half = (MAX_MESSAGE_LENGTH - 3) >> 1;
  return `${message.slice(0, half)}...${message.slice(-half)}`;
}
