import type { IncomingHttpHeaders } from 'node:http';

export interface FakeJobResult {
  body: Record<string, unknown>;
  /** How it came. */
  transport: 'http' | 'channel';
  isStream: boolean | undefined;
}

export interface FakeJob {
  id: string;
  input: unknown;
  extra: Record<string, unknown>;
  state: 'waiting' | 'given' | 'ended' | 'cancelled';
  lease: string;
  timesTaken: number;
  progress: unknown[];
  chunks: unknown[];
  /** The last number under which a chunk came. */
  chunkNumber: number;
  results: FakeJobResult[];
}

/** Everything that a worker sent, in order. */
export interface ReceivedMessage {
  /**
   * `job-take`, `job-take-batch`, `job-stop`, `job-done`, `job-stream`, `ping`, `job-channel`, or the letter
   * of a line.
   */
  operation: string;
  receivedAt: number;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  text: string;
}
