/** A job as it was taken: everything that the platform sent, read as JSON. Whole numbers beyond 2^53 lose digits. */
export interface Job<Input = unknown> {
  id: string;
  input: Input;
  webhook?: string;
  policy?: Record<string, unknown>;
  [member: string]: unknown;
}

export interface Context {
  /** Aborted when the job was cancelled or ran out of time, or when the worker has to stop at once. No result is wanted then. */
  readonly signal: AbortSignal;
  /** Shows a value as the job's output while it runs. The latest one counts. */
  readonly progress: (value: unknown) => void;
}

/**
 * Does a job. What it returns, or what its promise resolves to, is the output. What a
 * generator yields is streamed, chunk by chunk.
 */
export type Handler<Input = unknown> = (job: Job<Input>, context: Context) => unknown;
