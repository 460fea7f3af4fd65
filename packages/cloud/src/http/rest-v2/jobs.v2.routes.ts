import { JOB_ACTIONS } from '../../domain/job-search-query.ts';
import type { JobAction } from '../../domain/job-search-query.ts';
import { JOB_SEARCH, MAX_BULK_JOBS, MAX_INPUT_PATCH_BYTES, MAX_RUN_BODY_BYTES } from '../../domain/limits.ts';
import type { InputEdit } from '../../queue/job-bulk-actions.ts';
import type { AllServices } from '../../resources/resources.ts';
import type { BulkTarget } from '../../resources/endpoints/endpoint-jobs.ts';
import { schemaError } from '../../support/errors.ts';
import { object, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { byId } from './common.v2.schema.ts';
import {
  bulkBody,
  bulkResult,
  errorGroupList,
  errorGroupQuery,
  jobDetail,
  jobList,
  jobListQuery,
  readFilter,
  readJobCursor,
  redriveBody,
  serializeErrorGroup,
  serializeJobDetail,
  serializeJobEntry,
  writeJobCursor,
} from './jobs.v2.schema.ts';

const tag = 'Jobs';
const DEFAULT_LIMIT = 100;
/** The key needs the serverless scope for the endpoint of this parameter, too. */
const endpointIdParam = 'id';

/**
 * Berth only: the jobs of an endpoint as a list to search, errors by fingerprint, and actions on many jobs.
 */
export function jobOperations({ jobs }: AllServices): Operation[] {
  return [
    operation({
      id: 'searchJobs',
      method: 'GET',
      path: '/serverless/{id}/jobs',
      tag,
      summary: 'Search the jobs of a queue endpoint, newest first',
      description:
        `Berth only. One request scans at most ${JOB_SEARCH.rows} jobs for at most ` +
        `${JOB_SEARCH.milliseconds} ms, so it may have fewer jobs than \`limit\`, or none, ` +
        `while \`hasNextPage\` is true. Running, waiting and failed jobs (FAILED, TIMED_OUT) are ` +
        'found by an index, and so are times.',
      access: 'read',
      endpointIdParam,
      params: byId,
      query: jobListQuery,
      status: 200,
      response: jobList,
      errorStatuses: [400, 404, 422],
      handle: async ({ caller, params, query: { cursor, limit = DEFAULT_LIMIT, ...filter } }) => {
        const page = { before: readJobCursor(cursor), limit };
        const found = await jobs.list(caller, params.id, readFilter(filter), page);
        return {
          jobs: found.jobs.map(({ found: { job, error }, payloads }) =>
            serializeJobEntry(job, error, payloads?.request),
          ),
          scanned: found.scanned,
          pagination: { nextCursor: writeJobCursor(found.next), hasNextPage: found.next !== undefined },
        };
      },
    }),
    operation({
      id: 'getJob',
      method: 'GET',
      path: '/serverless/{id}/jobs/{jobId}',
      tag,
      summary: 'Get a job with its input, output and error',
      description: 'Berth only. Unlike `/status`, it shows the input of a job that has ended.',
      access: 'read',
      endpointIdParam,
      params: object({ id: text({ minLength: 1 }), jobId: text({ minLength: 1 }) }),
      status: 200,
      response: jobDetail,
      errorStatuses: [400, 404],
      handle: async ({ caller, params }) =>
        serializeJobDetail(await jobs.get(caller, params.id, params.jobId)),
    }),
    operation({
      id: 'listJobErrors',
      method: 'GET',
      path: '/serverless/{id}/errors',
      tag,
      summary: 'Group the errors of failed jobs by fingerprint',
      description:
        'Berth only. Errors that differ only in ids, numbers and paths have one fingerprint. The ' +
        `newest ${JOB_SEARCH.rows} failed jobs are counted.`,
      access: 'read',
      endpointIdParam,
      params: byId,
      query: errorGroupQuery,
      status: 200,
      response: errorGroupList,
      errorStatuses: [400, 404, 422],
      handle: async ({ caller, params, query }) => {
        const found = await jobs.errorGroups(caller, params.id, readFilter(query));
        return { ...found, groups: found.groups.map(serializeErrorGroup) };
      },
    }),
    ...JOB_ACTIONS.map((action) => bulkOperation(jobs, action)),
  ];
}

const ACTION_TEXTS: Record<JobAction, { summary: string; description: string }> = {
  retry: {
    summary: 'Retry failed jobs',
    description: 'The same job is put at the end of the queue. Without a status: FAILED and TIMED_OUT.',
  },
  cancel: {
    summary: 'Cancel jobs',
    description: 'Without a status: IN_QUEUE. To cancel running jobs too, name IN_PROGRESS.',
  },
  redrive: {
    summary: 'Send ended jobs again as new jobs',
    description:
      'A new job with the same request; the old job stays as it is. Its input may differ: `input` for a ' +
      'single id, `inputs` for several, `inputPatch` for all of them. Without a status: FAILED and TIMED_OUT.',
  },
};

function bulkOperation(jobs: AllServices['jobs'], action: JobAction): Operation {
  const isRedrive = action === 'redrive';
  return operation({
    id: `${action}Jobs`,
    method: 'POST',
    path: `/serverless/{id}/jobs/${action}`,
    tag,
    summary: ACTION_TEXTS[action].summary,
    description:
      `Berth only. Names jobs by \`ids\` or by \`filter\`; at most ${MAX_BULK_JOBS} in one call. ` +
      `Jobs that cannot be changed are skipped, with the reason. ${ACTION_TEXTS[action].description}`,
    access: 'write',
    endpointIdParam,
    params: byId,
    body: isRedrive ? redriveBody : bulkBody,
    ...(isRedrive && { bodyLimit: MAX_RUN_BODY_BYTES }),
    status: 200,
    response: bulkResult,
    errorStatuses: [400, 404, 413, 422],
    handle: async ({ caller, params, body }) => {
      const { target, edit } = readRedrive(body);
      const { done, skipped, next } = await jobs.act(caller, params.id, action, target, edit);
      return { done: done.length, jobs: done, skipped, nextCursor: writeJobCursor(next) };
    },
  });
}

/** Of the ways to change the input at most one may be given. */
function readRedrive({ input, inputs, inputPatch, ...named }: Static<typeof redriveBody>): {
  target: BulkTarget;
  edit?: InputEdit;
} {
  if ([input, inputs, inputPatch].filter((each) => each !== undefined).length > 1)
    throw schemaError(['$: give one of `input`, `inputs` and `inputPatch`']);
  if (inputs !== undefined) {
    if (named.ids !== undefined || named.filter !== undefined)
      throw schemaError(['$.inputs: names the jobs itself; leave out `ids` and `filter`']);
    const texts = new Map(
      inputs.map((each, index) => [each.id, inputText(each.input, `inputs[${index}].input`)]),
    );
    return { target: { ids: [...texts.keys()] }, edit: { inputs: texts } };
  }
  const target = readTarget(named);
  if (inputPatch !== undefined) {
    if (Buffer.byteLength(JSON.stringify(inputPatch)) > MAX_INPUT_PATCH_BYTES)
      throw schemaError([`$.inputPatch: is larger than ${MAX_INPUT_PATCH_BYTES} bytes`]);
    return { target, edit: { patch: inputPatch } };
  }
  if (input === undefined) return { target };
  const [id, ...others] = named.ids ?? [];
  if (id === undefined || others.length > 0)
    throw schemaError([
      '$.input: needs `ids` with a single job; for several jobs use `inputs` or `inputPatch`',
    ]);
  return { target, edit: { inputs: new Map([[id, inputText(input, 'input')]]) } };
}

function inputText(input: unknown, path: string): string {
  if (input === null) throw schemaError([`$.${path}: must not be null`]);
  return JSON.stringify(input);
}

function readTarget({ ids, filter, limit = MAX_BULK_JOBS, cursor }: Static<typeof bulkBody>): BulkTarget {
  if ((ids === undefined) === (filter === undefined))
    throw schemaError([
      '$: give either `ids` or `filter`; an empty filter means all jobs of the default status',
    ]);
  if (ids !== undefined) return { ids };
  return { filter: readFilter(filter ?? {}), before: readJobCursor(cursor), limit };
}
