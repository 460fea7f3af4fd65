import { MAX_TIMESTAMP } from '../../support/clock.ts';
import { abortOnClose, asStreamingResponse, sendJson } from '../raw-http.ts';
import { checkJob, parseJobId } from './job-operation.ts';
import type { JobCall, JobOperations, JobRoutesDeps } from './job-operation.ts';

/** A followed log ends after this long. */
const MAX_LOG_FOLLOW_MS = 60 * 60_000;
/** The last lines of a handler may arrive after its result. */
const LOG_TAIL_MS = 500;

/** `logs`: what the worker of a job wrote while it ran the job. */
export function jobLogOperations(deps: JobRoutesDeps): JobOperations {
  const handle = (call: JobCall): Promise<void> => logs(deps, call);
  return { logs: { methods: ['GET'], segments: 1, mode: 'read', long: true, handle } };
}

/** A list, or server-sent events while the job runs. */
async function logs(deps: JobRoutesDeps, { request, response, endpoint, rest }: JobCall): Promise<void> {
  const { seq, id } = parseJobId(rest);
  const job = await checkJob(deps.queue, endpoint.id, seq, id);
  const disconnected = abortOnClose(response);
  const live = request.headers.accept?.includes('text/event-stream') === true;
  const lines =
    deps.jobLogs?.(live ? job : { ...job, endedAt: job.endedAt ?? MAX_TIMESTAMP }, disconnected) ?? [];
  if (!live) {
    const entries: string[] = [];
    for await (const { ts, source, line } of lines)
      entries.push(JSON.stringify({ ts: new Date(ts).toISOString(), source, line }));
    return sendJson(response, 200, `{"logs":[${entries.join(',')}]}`);
  }
  const events = asStreamingResponse(response);
  events.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    'x-accel-buffering': 'no',
  });
  // The first line may take long to come.
  events.flushHeaders();
  // The worker's log continues after the job; the response ends with the job.
  if (job.endedAt === null) {
    const ended = deps.queue.waitForEnd(endpoint.id, seq, MAX_LOG_FOLLOW_MS, disconnected);
    // If the wait fails, the response ends too, and the client asks again.
    void ended.catch(() => undefined).then(() => setTimeout(() => events.end(), LOG_TAIL_MS));
  }
  for await (const { ts, seq: number, source, line } of lines) {
    if (events.destroyed || events.writableEnded) return;
    const at = new Date(ts).toISOString();
    events.write(`id: ${at}/${number}\ndata: ${JSON.stringify({ ts: at, source, line })}\n\n`);
  }
  events.end();
}
