/** A job as the platform sent it, parsed as JSON. Integers beyond 2^53 lose precision. */
export interface Job<Input = unknown> {
  id: string;
  input: Input;
  webhook?: string;
  policy?: Record<string, unknown>;
  /** The W3C context of the job's trace, if Berth traces: pass it on as the header of that name. */
  traceparent?: string;
  [member: string]: unknown;
}

export interface Context {
  /**
   * Aborted when the job was cancelled or timed out, or when the worker must stop immediately. The result is
   * discarded then.
   */
  readonly signal: AbortSignal;
  /** Sets the job's output while it runs. The latest value counts. */
  readonly progress: (value: unknown) => void;
}

/**
 * Runs a job. The return value, or what its promise resolves to, is the output. What a generator yields is
 * streamed, chunk by chunk.
 */
export type Handler<Input = unknown> = (job: Job<Input>, context: Context) => unknown;
