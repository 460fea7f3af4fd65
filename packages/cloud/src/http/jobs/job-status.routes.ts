import { checkScope } from '../../auth/authenticator.ts';
import type { JobOutcome } from '../../domain/job-records.ts';
import { JOB_TTL_MS, STREAM_WAIT_MS } from '../../domain/limits.ts';
import type { Endpoint } from '../../domain/records.ts';
import { clamp } from '../../queue/job-submission.ts';
import { BerthError } from '../../support/errors.ts';
import { abortOnClose, asStreamingResponse, cancelOnClose, readBody, sendJson } from '../raw-http.ts';
import type { BasicResponse } from '../raw-http.ts';
import { jobStatusJson, jobSummaryJson } from './job-json.ts';
import { findJob, MAX_SMALL_BODY_BYTES, missingJob, parseJobId, requireJob } from './job-operation.ts';
import type { JobCall, JobOperations, JobRoutesDeps } from './job-operation.ts';
import { parseMilliseconds, parseWait } from './job-request.ts';
import { parseEventId, readStreamPage, sendStreamEvents, DEFAULT_STREAM_WAIT_MS } from './job-stream.ts';
import { wantsEnvelope } from './stream-envelope.ts';
import { waitingReason } from './waiting-reason.ts';

/** The operations on one job: `status`, `status-sync`, `stream`, `cancel` and `retry`. */
export function jobStatusOperations(deps: JobRoutesDeps): JobOperations {
  // The local server of the Python SDK accepts POST to read a job, and so does code that was written against it.
  const read = { methods: ['GET', 'POST'], segments: 1, mode: 'read' } as const;
  const write = { methods: ['POST'], segments: 1, mode: 'write' } as const;
  return {
    status: { ...read, handle: (call) => status(deps, call) },
    'status-sync': { ...read, handle: (call) => statusSync(deps, call) },
    stream: { ...read, handle: (call) => stream(deps, call) },
    cancel: { ...write, handle: (call) => cancel(deps, call) },
    retry: { ...write, handle: (call) => retry(deps, call) },
  };
}

async function status(deps: JobRoutesDeps, { response, endpoint, key, rest, query }: JobCall): Promise<void> {
  const { seq, id } = parseJobId(rest);
  const ttl = query.get('ttl');
  if (ttl !== null) {
    // Reading needs read access; a shorter time to live needs write access.
    checkScope(key, { scope: 'serverless', mode: 'write', endpointId: endpoint.id });
    const milliseconds = clamp(parseMilliseconds(ttl, 'ttl'), JOB_TTL_MS);
    await findJob(deps.queue, endpoint.id, seq, id);
    await deps.queue.setTimeToLive(endpoint.id, seq, milliseconds);
  }
  await sendJobStatus(deps, response, endpoint, await findJob(deps.queue, endpoint.id, seq, id));
}

async function statusSync(deps: JobRoutesDeps, { response, endpoint, rest, query }: JobCall): Promise<void> {
  const { seq, id } = parseJobId(rest);
  await sendJobStatus(
    deps,
    response,
    endpoint,
    requireJob(await deps.queue.waitForEnd(endpoint.id, seq, parseWait(query), cancelOnClose(response)), id),
  );
}

async function stream(
  deps: JobRoutesDeps,
  { request, response, endpoint, rest, query }: JobCall,
): Promise<void> {
  const { seq, id } = parseJobId(rest);
  const disconnected = abortOnClose(response);
  const { queue } = deps;
  if (request.headers.accept?.includes('text/event-stream') === true) {
    return sendStreamEvents(
      queue,
      endpoint.id,
      seq,
      id,
      parseEventId(request.headers['last-event-id']?.toString()),
      asStreamingResponse(response),
      disconnected,
    );
  }
  const hold = parseWait(query, DEFAULT_STREAM_WAIT_MS, STREAM_WAIT_MS);
  const { status, chunks } = await readStreamPage(queue, endpoint.id, seq, id, hold, disconnected);
  const list = `[${chunks.map((chunk) => chunk.text).join(',')}]`;
  sendJson(
    response,
    200,
    wantsEnvelope(request.method ?? '', request.headers, query)
      ? `{"id":"${id}","status":"${status}","stream":${list}}`
      : list,
  );
}

async function cancel(deps: JobRoutesDeps, { request, response, endpoint, rest }: JobCall): Promise<void> {
  await readBody(request, MAX_SMALL_BODY_BYTES);
  const { seq, id } = parseJobId(rest);
  await findJob(deps.queue, endpoint.id, seq, id);
  const job = await deps.queue.cancel(endpoint.id, seq);
  if (job === undefined) throw missingJob(id);
  sendJson(response, 200, jobSummaryJson(job));
}

async function retry(deps: JobRoutesDeps, { request, response, endpoint, rest }: JobCall): Promise<void> {
  await readBody(request, MAX_SMALL_BODY_BYTES);
  const { seq, id } = parseJobId(rest);
  await findJob(deps.queue, endpoint.id, seq, id);
  const done = await deps.queue.retry(endpoint.id, seq);
  if (done === undefined) throw missingJob(id);
  if (!done.changed)
    throw new BerthError(
      'state',
      `only a FAILED or TIMED_OUT job can be retried; this one is ${done.before.status}`,
    );
  sendJson(response, 200, jobSummaryJson(done.after));
}

/** Sends the job, why it waits, and the start that it waited for. Nothing is looked up for a client that has left. */
export async function sendJobStatus(
  deps: JobRoutesDeps,
  response: BasicResponse,
  endpoint: Endpoint,
  outcome: JobOutcome,
): Promise<void> {
  if (response.destroyed) return;
  const reason =
    outcome.job.status === 'IN_QUEUE'
      ? await waitingReason(deps.queue, outcome.job, () => deps.noWorkersReason(endpoint))
      : undefined;
  const phases = deps.startPhases?.(outcome.job);
  sendJson(response, 200, jobStatusJson(outcome, reason, phases instanceof Promise ? await phases : phases));
}
