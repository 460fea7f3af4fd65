import { hasEnded } from '../../jobs/job.ts';
import { onOneLine } from '../../jobs/json-text.ts';
import type { JobQueue } from '../../jobs/queue.ts';
import type { Job, JobStatus } from '../../store/job-records.ts';
import type { Chunk } from '../../store/jobs.ts';
import { notFound } from '../../support/errors.ts';
import { writePiece } from '../raw.ts';
import type { Response } from '../raw.ts';

/** How long an empty `/stream` waits for a first chunk: long enough that a loop does not spin, shorter than any client's patience. */
export const STREAM_HOLD_MS = 4_000;
/** One answer carries about this much. */
const ANSWER_BYTES = 8 * 1024 * 1024;
const HEARTBEAT_MS = 15_000;

export interface StreamPage {
  /** Never an end before the last chunks were handed out. */
  status: JobStatus;
  chunks: Chunk[];
}

/** The chunks that nobody has read yet; each is handed out once. Waits a little for the first. */
export async function drainStream(queue: JobQueue, endpointId: string, seq: number, id: string, hold: number, signal: AbortSignal): Promise<StreamPage> {
  const until = Date.now() + hold;
  for (;;) {
    const changed = queue.waitForChange(endpointId, seq, Math.max(0, until - Date.now()), signal);
    const found = await queue.find(endpointId, seq);
    if (found === undefined || found.job.id !== id) throw notFound('job', id);
    const { job } = found;
    const chunks = await unread(queue, job, found.payloads.output);
    const last = chunks.at(-1);
    if (last !== undefined) {
      // Another reader may have been faster; then look again.
      if (!(await queue.streams.drainTo(job, last.number))) continue;
      const more = await queue.streams.read(endpointId, seq, last.number, 1);
      return { status: more.length > 0 && hasEnded(job) ? 'IN_PROGRESS' : job.status, chunks };
    }
    if (hasEnded(job) || signal.aborted || queue.stopping || Date.now() >= until) return { status: job.status, chunks: [] };
    await changed;
  }
}

/** A job that streamed nothing counts its whole output as one chunk. */
async function unread(queue: JobQueue, job: Job, output: string | null): Promise<Chunk[]> {
  const chunks = await queue.streams.read(job.endpointId, job.seq, job.drained, ANSWER_BYTES);
  if (chunks.length > 0 || job.status !== 'COMPLETED' || job.drained > 0 || output === null) return chunks;
  return [{ number: 1, text: `{"output":${output}}` }];
}

/** Follows a job live as server-sent events, from after chunk `after`, until it has ended and all is sent. Takes nothing away from other readers. */
export async function followStream(queue: JobQueue, endpointId: string, seq: number, id: string, after: number, response: Response, signal: AbortSignal): Promise<void> {
  let sent = after;
  let begun = false;
  const write = (text: string): Promise<void> => {
    if (!begun) response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache', 'x-accel-buffering': 'no' });
    begun = true;
    return writePiece(response, text, signal);
  };
  while (!signal.aborted) {
    const changed = queue.waitForChange(endpointId, seq, HEARTBEAT_MS, signal);
    const found = await queue.find(endpointId, seq);
    if (found === undefined || found.job.id !== id) {
      if (!begun) throw notFound('job', id);
      break;
    }
    const chunks = await unread(queue, { ...found.job, drained: sent }, found.payloads.output);
    await write(chunks.length === 0 ? ': waiting\n\n' : chunks.map(({ number, text }) => `id: ${number}\ndata: ${onOneLine(text)}\n\n`).join(''));
    sent = chunks.at(-1)?.number ?? sent;
    if (chunks.length > 0) continue;
    // Whoever follows a server that stops comes back elsewhere, with the number of the last chunk.
    if (hasEnded(found.job) || queue.stopping) break;
    await changed;
  }
  response.end();
}
