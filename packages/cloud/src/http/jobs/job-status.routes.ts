import { checkScope } from '../../auth/authenticator.ts';
import { JOB_TTL_MS, STREAM_WAIT_MS } from '../../domain/limits.ts';
import { hasEnded } from '../../domain/job-status.ts';
import { JobStatusSender, sendJobStatus } from './job-status-sender.ts';
import { clamp } from '../../queue/job-submission.ts';
import { BerthError } from '../../support/errors.ts';
import { abortOnClose, asStreamingResponse, cancelOnClose, readBody, sendJson } from '../raw-http.ts';
import { jobSummaryJson } from './job-json.ts';
import { checkJob, MAX_SMALL_BODY_BYTES, missingJob, parseJobId, requireJob } from './job-operation.ts';
import type { JobCall, JobOperations, JobRoutesDeps } from './job-operation.ts';
import { parseMilliseconds, parseWait } from './job-request.ts';
import { parseEventId, readStreamPage, sendStreamEvents, DEFAULT_STREAM_WAIT_MS } from './job-stream.ts';
import { wantsEnvelope } from './stream-envelope.ts';

/** The operations on one job: `status`, `status-sync`, `stream`, `cancel` and `retry`. */
export function jobStatusOperations(deps: JobRoutesDeps): JobOperations {
  const sender = new JobStatusSender(deps);
  // The local server of the Python SDK accepts POST to read a job, and so does code that was written against
  // it.
  const read = { methods: ['GET', 'POST'], segments: 1, mode: 'read', long: true } as const;
  const write = { methods: ['POST'], segments: 1, mode: 'write' } as const;
  return {
    status: { ...read, handle: (call) => status(deps, sender, call) },
    'status-sync': { ...read, handle: (call) => statusSync(deps, sender, call) },
    stream: { ...read, handle: (call) => stream(deps, call) },
    cancel: { ...write, handle: (call) => cancel(deps, call) },
    retry: { ...write, handle: (call) => retry(deps, call) },
  };
}

async function status(deps: JobRoutesDeps, sender: JobStatusSender, call: JobCall): Promise<void> {
  const { endpoint, key, rest, query } = call;
  const { seq, id } = parseJobId(rest);
  const ttl = query.get('ttl');
  if (ttl !== null) {
    // Reading needs read access; a shorter time to live needs write access.
    checkScope(key, { scope: 'serverless', mode: 'write', endpointId: endpoint.id });
    const milliseconds = clamp(parseMilliseconds(ttl, 'ttl'), JOB_TTL_MS);
    await checkJob(deps.queue, endpoint.id, seq, id);
    await deps.queue.setTimeToLive(endpoint.id, seq, milliseconds);
  }
  await sender.send(call, await sender.find(endpoint.id, seq, id));
}

async function statusSync(deps: JobRoutesDeps, sender: JobStatusSender, call: JobCall): Promise<void> {
  const { response, endpoint, rest, query } = call;
  const { seq, id } = parseJobId(rest);
  const wait = parseWait(query);
  const now = await sender.find(endpoint.id, seq, id);
  if (hasEnded(now.job)) return sender.send(call, now);
  await sendJobStatus(
    deps,
    response,
    endpoint,
    requireJob(await deps.queue.waitForEnd(endpoint.id, seq, wait, cancelOnClose(response)), id),
  );
}

async function stream(
  deps: JobRoutesDeps,
  { request, response, endpoint, key, rest, query }: JobCall,
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
      { accountId: key.accountId, response: asStreamingResponse(response), signal: disconnected },
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
  await checkJob(deps.queue, endpoint.id, seq, id);
  const job = await deps.queue.cancel(endpoint.id, seq);
  if (job === undefined) throw missingJob(id);
  sendJson(response, 200, jobSummaryJson(job));
}

async function retry(deps: JobRoutesDeps, { request, response, endpoint, rest }: JobCall): Promise<void> {
  await readBody(request, MAX_SMALL_BODY_BYTES);
  const { seq, id } = parseJobId(rest);
  await checkJob(deps.queue, endpoint.id, seq, id);
  const done = await deps.queue.retry(endpoint.id, seq);
  if (done === undefined) throw missingJob(id);
  if (!done.changed)
    throw new BerthError(
      'state',
      `only a FAILED or TIMED_OUT job can be retried; this one is ${done.before.status}`,
    );
  sendJson(response, 200, jobSummaryJson(done.after));
}
