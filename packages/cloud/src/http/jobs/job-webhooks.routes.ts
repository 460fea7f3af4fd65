import { seqFromJobId } from '../../domain/job-ids.ts';
import { DEFAULT_JOB_LIST_LIMIT, JOB_LIST_LIMIT } from '../../domain/limits.ts';
import { clamp } from '../../queue/job-submission.ts';
import { readBody, sendJson } from '../raw-http.ts';
import { MAX_SMALL_BODY_BYTES, noSuchRoute, parseCount } from './job-operation.ts';
import type { JobCall, JobOperations, JobRoutesDeps } from './job-operation.ts';

/** `GET webhooks[?jobId=]`: the delivery log; `POST webhooks/{deliveryId}/redeliver`: sends it again. */
export function jobWebhookOperations(deps: JobRoutesDeps): JobOperations {
  return {
    webhooks: {
      methods: ['GET', 'POST'],
      segments: 2,
      mode: 'write',
      handle: (call) => webhooks(deps, call),
    },
  };
}

async function webhooks(
  deps: JobRoutesDeps,
  { request, response, endpoint, rest, query }: JobCall,
): Promise<void> {
  const [id, action] = rest;
  if (request.method === 'GET' && id === undefined) {
    const jobId = query.get('jobId');
    // An invalid job id is not looked up: PostgreSQL refuses text with a NUL.
    if (jobId !== null && seqFromJobId(jobId) === undefined)
      return sendJson(response, 200, '{"deliveries":[]}');
    const found = await deps.webhooks.list(endpoint.id, {
      limit: clamp(parseCount(query, 'limit', DEFAULT_JOB_LIST_LIMIT), JOB_LIST_LIMIT),
      ...(jobId !== null && { jobId }),
    });
    return sendJson(
      response,
      200,
      JSON.stringify({ deliveries: found.map(({ accountId: _, ...shown }) => shown) }),
    );
  }
  if (request.method !== 'POST' || id === undefined || action !== 'redeliver') throw noSuchRoute();
  await readBody(request, MAX_SMALL_BODY_BYTES);
  const { body: _, accountId: __, ...shown } = await deps.webhooks.redeliver(endpoint.id, id);
  sendJson(response, 200, JSON.stringify(shown));
}
