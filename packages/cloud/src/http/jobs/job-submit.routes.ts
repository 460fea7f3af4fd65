import { checkScope } from '../../auth/authenticator.ts';
import { bearerOrBareKey } from '../../auth/bearer.ts';
import type { SubmitRequest } from '../../queue/job-submitter.ts';
import type { JobOptions } from '../../queue/job-submission.ts';
import { MAX_RUN_BODY_BYTES, MAX_RUNSYNC_BODY_BYTES } from '../../domain/limits.ts';
import { notFound } from '../../support/errors.ts';
import { bufferedUtf8Body, cancelOnClose, readUtf8Body, sendJson } from '../raw-http.ts';
import { parseLargeJobRequest } from '../large-body-parser.ts';
import { readIdempotencyKey } from './idempotency-key.ts';
import { jobSummaryJson } from './job-json.ts';
import { missingJob } from './job-operation.ts';
import type { JobCall, JobOperations, JobRoutesDeps } from './job-operation.ts';
import { parseJobRequest, parseWait } from './job-request.ts';
import { traceSubmission } from './job-submission-trace.ts';
import { sendJobStatus } from './job-status-sender.ts';

/** `run` and `runsync`. */
export function submitOperations(deps: JobRoutesDeps): JobOperations {
  return {
    run: { methods: ['POST'], mode: 'write', handle: (call) => run(deps, call) },
    runsync: { methods: ['POST'], mode: 'write', long: true, handle: (call) => runSync(deps, call) },
  };
}

async function run(deps: JobRoutesDeps, call: JobCall): Promise<void> {
  const { request, response } = call;
  const buffered = bufferedUtf8Body(request, MAX_RUN_BODY_BYTES);
  const text = buffered ?? (await readLongBody(deps, call, MAX_RUN_BODY_BYTES));
  const options =
    buffered === undefined ? await parseLargeJobRequest(call.key.accountId, text) : parseJobRequest(text);
  const submitted = submission(call, text, options);
  const job = await traceSubmission(deps.tracing, call, submitted, (one) => deps.queue.submit(one));
  sendJson(response, 200, jobSummaryJson(job));
}

async function runSync(deps: JobRoutesDeps, call: JobCall): Promise<void> {
  const { request, response, endpoint, query } = call;
  const wait = parseWait(query);
  const disconnected = cancelOnClose(response);
  const text =
    bufferedUtf8Body(request, MAX_RUNSYNC_BODY_BYTES) ??
    (await readLongBody(deps, call, MAX_RUNSYNC_BODY_BYTES));
  const parsed = await parseLargeJobRequest(call.key.accountId, text);
  const options = { ...parsed, sync: { wait, waitGiven: query.has('wait') } };
  const { job, outcome } = await traceSubmission(
    deps.tracing,
    call,
    submission(call, text, options),
    (submitted) => deps.queue.submitAndWait(submitted, wait, disconnected),
  );
  if (outcome === undefined) throw missingJob(job.id);
  await sendJobStatus(deps, response, endpoint, outcome);
}

/**
 * While a body arrives in pieces, its key may be revoked and its endpoint removed: both are checked again.
 */
async function readLongBody(
  { authenticator, endpoints }: JobRoutesDeps,
  { request, endpoint, key }: JobCall,
  limit: number,
): Promise<string> {
  const text = await readUtf8Body(request, limit, key.accountId);
  checkScope(await authenticator.authenticate(bearerOrBareKey(request.headers.authorization)), {
    scope: 'serverless',
    mode: 'write',
    endpointId: endpoint.id,
  });
  if ((await endpoints.find(endpoint.id)) === undefined) throw notFound('endpoint', endpoint.id);
  return text;
}

function submission({ request, endpoint, key }: JobCall, text: string, options: JobOptions): SubmitRequest {
  return {
    endpoint,
    accountId: key.accountId,
    request: text,
    options,
    ...readIdempotencyKey(request.headers, text),
  };
}
