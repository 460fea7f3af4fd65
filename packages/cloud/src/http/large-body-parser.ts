import { Worker } from 'node:worker_threads';
import type { JobOptions } from '../queue/job-submission.ts';
import { BerthError } from '../support/errors.ts';
import type { ErrorCode } from '../support/errors.ts';
import { siblingProgram } from '../support/program-files.ts';
import { parseJobRequest } from './jobs/job-request.ts';
import { parseJobDone } from './workers/worker-posts.ts';
import type { WorkerPost } from './workers/worker-posts.ts';

/**
 * Longer texts are parsed on another thread: 9 MB with many members take 150 ms, in which no other
 * request would be served. To hand over so much takes 5 ms.
 */
export const LARGE_BODY_CHARS = 512 * 1024;
/** The memory of the thread is released when it has been idle for so long. */
const IDLE_MS = 10_000;

export interface LargeBodyTask {
  kind: 'request' | 'result';
  text: string;
}

export type LargeBodyReply = { value: unknown } | { code: ErrorCode; message: string };

interface Waiting {
  task: LargeBodyTask;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Parses large bodies on a thread of their own, one at a time. Accounts take turns. */
export class LargeBodyParser {
  /** In the order in which they are served next. */
  readonly #accounts = new Map<string, Waiting[]>();
  #thread: Worker | undefined;
  #current: Waiting | undefined;
  #idle: NodeJS.Timeout | undefined;

  parse(accountId: string, task: LargeBodyTask): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const waiting = this.#accounts.get(accountId);
      const entry = { task, resolve, reject };
      if (waiting === undefined) this.#accounts.set(accountId, [entry]);
      else waiting.push(entry);
      this.#next();
    });
  }

  /** Whether there is a thread now. */
  get isRunning(): boolean {
    return this.#thread !== undefined;
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    await this.#thread?.terminate();
  }

  #next(): void {
    if (this.#current !== undefined) return;
    const [first] = this.#accounts;
    clearTimeout(this.#idle);
    if (first === undefined) {
      this.#idle = setTimeout(() => void this.#thread?.terminate(), IDLE_MS).unref();
      return;
    }
    const [accountId, waiting] = first;
    const next = waiting.shift();
    this.#current = next;
    // The account goes to the end of the line.
    this.#accounts.delete(accountId);
    if (waiting.length > 0) this.#accounts.set(accountId, waiting);
    this.#thread ??= this.#start();
    this.#thread.postMessage(next?.task);
  }

  #start(): Worker {
    const thread = new Worker(siblingProgram('large-body-thread', import.meta.url));
    thread.unref();
    thread.on('message', (reply: LargeBodyReply) =>
      this.#ended((waiting) => {
        if ('value' in reply) waiting.resolve(reply.value);
        else waiting.reject(new BerthError(reply.code, reply.message));
      }),
    );
    thread.on('error', (error) => this.#ended((waiting) => waiting.reject(error)));
    thread.on('exit', () => {
      if (this.#thread === thread) this.#thread = undefined;
      this.#ended((waiting) =>
        waiting.reject(new BerthError('unavailable', 'the body could not be read; try again')),
      );
    });
    return thread;
  }

  #ended(answer: (waiting: Waiting) => void): void {
    const waiting = this.#current;
    this.#current = undefined;
    if (waiting !== undefined) answer(waiting);
    this.#next();
  }
}

const parser = new LargeBodyParser();

/** `parseJobRequest`, on another thread if the text is large. */
export function parseLargeJobRequest(accountId: string, text: string): JobOptions | Promise<JobOptions> {
  if (text.length < LARGE_BODY_CHARS) return parseJobRequest(text);
  return parser.parse(accountId, { kind: 'request', text }) as Promise<JobOptions>;
}

/** `parseJobDone`, on another thread if the text is large. */
export function parseLargeJobDone(accountId: string, text: string): WorkerPost | Promise<WorkerPost> {
  if (text.length < LARGE_BODY_CHARS) return parseJobDone(text);
  return parser.parse(accountId, { kind: 'result', text }) as Promise<WorkerPost>;
}
