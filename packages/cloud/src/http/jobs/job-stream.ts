import { hasEnded } from '../../domain/job-status.ts';
import { toSingleLine } from '../../support/json-text.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import type { Job, JobStatus, Chunk } from '../../domain/job-records.ts';
import { FairTurns } from '../../support/fair-turns.ts';
import { notFound } from '../../support/errors.ts';
import { writeWithBackpressure } from '../raw-http.ts';
import type { Response } from '../raw-http.ts';
import { parseJobStream } from '../workers/worker-posts.ts';

/**
 * How long `/stream` waits for a first chunk: long enough to keep a polling client slow, shorter than any
 * client's timeout.
 */
export const DEFAULT_STREAM_WAIT_MS = 4_000;
/** The approximate size of one response. */
const RESPONSE_BYTES = 8 * 1024 * 1024;
/** Events are read and sent this many bytes at a time: others are served in between. */
const EVENT_BYTES = 256 * 1024;
const HEARTBEAT_MS = 15_000;
/**
 * Readers that are sent their events in one turn of the event loop: 16 take about a millisecond. Those who follow the
 * same job are all woken at once.
 */
export const READERS_PER_TURN = 16;

const readerTurns = new FairTurns(READERS_PER_TURN);

export interface StreamPage {
  /** Not a terminal status before the last chunks were returned. */
  status: JobStatus;
  chunks: Chunk[];
}

/** The unread chunks; each is returned once. Waits a little for the first. */
export async function readStreamPage(
  queue: JobQueue,
  endpointId: string,
  seq: number,
  id: string,
  hold: number,
  signal: AbortSignal,
): Promise<StreamPage> {
  // A monotonic clock: the system clock may be set during the wait.
  const until = performance.now() + hold;
  for (;;) {
    const changed = queue.waitForChange(endpointId, seq, Math.max(0, until - performance.now()), signal);
    const found = await queue.findOutline(endpointId, seq, 0);
    if (found === undefined || found.job.id !== id) throw notFound('job', id);
    const { job } = found;
    const chunks = await unreadChunks(queue, job, RESPONSE_BYTES);
    const last = chunks.at(-1);
    if (last !== undefined) {
      // Another reader may have taken them; then check again.
      if (!(await queue.streams.markDrained(job, last.number))) continue;
      const more = await unreadChunks(queue, { ...job, drained: last.number }, 1);
      return { status: more.length > 0 && hasEnded(job) ? 'IN_PROGRESS' : job.status, chunks };
    }
    if (hasEnded(job) || signal.aborted || queue.isClosing || performance.now() >= until)
      return { status: job.status, chunks: [] };
    await changed;
  }
}

/**
 * The next chunks, together up to so many bytes. The output of a job that streamed nothing counts as its chunks, up to
 * `outputBytes`: all of it has to be read and taken apart for each part.
 */
async function unreadChunks(
  queue: JobQueue,
  { endpointId, seq, status, drained }: Job,
  bytes: number,
  outputBytes = bytes,
): Promise<Chunk[]> {
  const chunks = await queue.streams.read(endpointId, seq, drained, bytes);
  if (chunks.length > 0 || status !== 'COMPLETED') return chunks;
  const hasStreamed = drained > 0 && (await queue.streams.read(endpointId, seq, 0, 1)).length > 0;
  if (hasStreamed) return [];
  const output = await queue.readOutput(endpointId, seq);
  if (output === undefined) return [];
  const pieces = parseJobStream(
    `{"output":${Buffer.from(output.buffer, output.byteOffset, output.length).toString()}}`,
  )
    .map((text, index) => ({ number: index + 1, text }))
    .slice(drained);
  let size = 0;
  return pieces.filter(({ text }, index) => (size += text.length) <= outputBytes || index === 0);
}

/** The position of a reader of events. */
export interface StreamPosition {
  attempt: number;
  number: number;
}

/** The number of the event. Events of a later attempt, which start again at 1, name the attempt too. */
function eventId({ attempt, number }: StreamPosition): string {
  return attempt <= 1 ? String(number) : `${attempt}/${number}`;
}

/** Parses `Last-Event-ID`; any other value means the beginning. */
export function parseEventId(text: string | undefined): StreamPosition {
  const [, attempt = '1', number = '0'] = /^(?:(\d{1,9})\/)?(\d{1,9})$/.exec(text ?? '') ?? [];
  return { attempt: Number(attempt), number: Number(number) };
}

/** Who follows a job. */
export interface StreamReader {
  accountId: string;
  response: Response;
  signal: AbortSignal;
}

/**
 * Follows a job as server-sent events, after the last one read, until it has ended and all is sent. Other
 * readers are not affected.
 */
export async function sendStreamEvents(
  queue: JobQueue,
  endpointId: string,
  seq: number,
  id: string,
  after: StreamPosition,
  { accountId, response, signal }: StreamReader,
): Promise<void> {
  let sent = after;
  let begun = false;
  const write = (text: string): Promise<void> => {
    if (!begun)
      response.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-cache',
        'x-accel-buffering': 'no',
      });
    begun = true;
    return writeWithBackpressure(response, text, signal);
  };
  while (!signal.aborted) {
    const changed = queue.waitForChange(endpointId, seq, HEARTBEAT_MS, signal);
    const found = await queue.findOutline(endpointId, seq, 0);
    if (found === undefined || found.job.id !== id) {
      if (!begun) throw notFound('job', id);
      break;
    }
    const attempt = Math.max(1, found.job.attempt);
    if (attempt !== sent.attempt) sent = { attempt, number: 0 };
    const chunks = await unreadChunks(
      queue,
      { ...found.job, drained: sent.number },
      EVENT_BYTES,
      RESPONSE_BYTES,
    );
    await write(
      chunks.length === 0
        ? ': waiting\n\n'
        : chunks
            .map(({ number, text }) => `id: ${eventId({ attempt, number })}\ndata: ${toSingleLine(text)}\n\n`)
            .join(''),
    );
    sent = { attempt, number: chunks.at(-1)?.number ?? sent.number };
    if (chunks.length > 0) continue;
    // When the server stops, clients reconnect elsewhere with the number of the last chunk.
    if (hasEnded(found.job) || queue.isClosing) break;
    await changed;
    await readerTurns.next(accountId);
  }
  response.end();
}
