import { errorFingerprint, errorText } from '../../domain/error-fingerprint.ts';
import { JOB_STATUSES } from '../../domain/job-records.ts';
import type { Job, JobWithPayloads } from '../../domain/job-records.ts';
import { delayTime, executionTime } from '../../domain/job-status.ts';
import type { JobSearchFilter } from '../../domain/job-search-query.ts';
import { JOB_SEARCH, MAX_BULK_JOBS, MAX_INPUT_PATCH_BYTES, MAX_PAGE_SIZE } from '../../domain/limits.ts';
import type { ErrorGroup } from '../../queue/job-searcher.ts';
import { isoTime } from '../../support/clock.ts';
import { schemaError } from '../../support/errors.ts';
import { memberText } from '../../support/json-text.ts';
import {
  anyValue,
  boolean,
  commaList,
  integer,
  list,
  map,
  named,
  nullable,
  object,
  stringEnum,
  text,
} from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { dateTime } from './common.v2.schema.ts';
import { pagination } from './pagination.v2.ts';

const INPUT_PREVIEW_CHARS = 500;
const MAX_TEXT_LENGTH = 500;
const MAX_JOB_ID_LENGTH = 64;

const status = stringEnum(JOB_STATUSES);
const fingerprint = text({
  pattern: '^[0-9a-f]{12}$',
  description: 'Equal for errors that differ only in ids, numbers and paths',
});

const timeRange = {
  from: dateTime('Created at or after this time'),
  to: dateTime('Created before this time'),
};
const filterFields = {
  ...timeRange,
  idPrefix: text({ minLength: 1, maxLength: MAX_JOB_ID_LENGTH, description: 'How the id begins' }),
  text: text({
    minLength: 1,
    maxLength: MAX_TEXT_LENGTH,
    description:
      `Occurs in the JSON text of the request, within its first ${JOB_SEARCH.textChars} characters; ` +
      'ASCII letters of either case are equal',
  }),
  fingerprint,
};
const cursor = text({
  pattern: '^j\\d{1,16}$',
  description: 'Where to go on: `nextCursor` of the answer before',
});

export const jobListQuery = object(
  {},
  {
    status: commaList(status, { minItems: 1, description: 'Any of these' }),
    ...filterFields,
    cursor,
    limit: integer({ minimum: 1, maximum: MAX_PAGE_SIZE, default: 100, description: 'How many to answer' }),
  },
);
export const errorGroupQuery = object({}, timeRange);

const jobFields = {
  id: text(),
  status,
  createdAt: dateTime('When it was submitted'),
  startedAt: nullable(dateTime('When a worker took it')),
  endedAt: nullable(dateTime('When it ended')),
  delayTime: nullable(integer({ description: 'Milliseconds in the queue' })),
  executionTime: nullable(integer({ description: 'Milliseconds from the take to the end' })),
  workerId: nullable(text()),
  retries: integer({ description: 'How often it was tried again after its worker was lost' }),
  error: nullable(text({ description: 'Type and message of its error' })),
  fingerprint: nullable(fingerprint),
};
const jobEntry = named(
  'JobEntry',
  object({
    ...jobFields,
    inputPreview: nullable(
      text({
        description: `The first ${INPUT_PREVIEW_CHARS} characters of its input as JSON; null for a large job`,
      }),
    ),
  }),
);

export const jobList = named(
  'JobList',
  object({
    jobs: list(jobEntry),
    scanned: integer({ description: 'The maximum number of scanned jobs' }),
    pagination,
  }),
);

export const jobDetail = named(
  'JobDetail',
  object({
    ...jobFields,
    input: anyValue({ description: 'As it was sent' }),
    output: anyValue({ description: 'Null where there is none' }),
    errorDetail: anyValue({ description: 'The whole error, with its traceback; null where there is none' }),
    webhook: nullable(text()),
  }),
);

export const errorGroupList = named(
  'JobErrorGroupList',
  object({
    groups: list(
      named(
        'JobErrorGroup',
        object({
          fingerprint,
          type: nullable(text({ description: 'The class of the exception' })),
          message: text({ description: 'The message, with placeholders for what differs' }),
          count: integer(),
          firstSeen: dateTime('When the first of them ended'),
          lastSeen: dateTime('When the last of them ended'),
          sampleJobId: text({ description: 'The newest of them' }),
          sampleError: text({ description: 'Its error' }),
        }),
      ),
    ),
    scanned: integer({ description: 'The maximum number of scanned jobs' }),
    complete: boolean({
      description:
        `False where there are more failed jobs than one answer counts (${JOB_SEARCH.rows}): then ` +
        'these are the newest',
    }),
  }),
);

const jobId = text({ minLength: 1, maxLength: MAX_JOB_ID_LENGTH });
const bulkFields = {
  ids: list(jobId, { minItems: 1, maxItems: MAX_BULK_JOBS }),
  filter: object({}, { status: list(status, { minItems: 1 }), ...filterFields }),
  limit: integer({
    minimum: 1,
    maximum: MAX_BULK_JOBS,
    default: MAX_BULK_JOBS,
    description: 'With `filter`: how many jobs at most',
  }),
  cursor,
};
export const bulkBody = named('JobBulkRequest', object({}, bulkFields));
export const redriveBody = named(
  'JobRedriveRequest',
  object(
    {},
    {
      ...bulkFields,
      input: anyValue({ description: 'With a single id: the input of the new job' }),
      inputs: list(object({ id: jobId, input: anyValue({ description: 'Of the new job; not null' }) }), {
        minItems: 1,
        maxItems: MAX_BULK_JOBS,
        description: 'In place of `ids`: jobs, each with its new input',
      }),
      inputPatch: map(anyValue(), {
        description:
          'A JSON merge patch (RFC 7396) that is applied to the input of each job: null removes a member. ' +
          `At most ${MAX_INPUT_PATCH_BYTES} bytes`,
      }),
    },
  ),
);
export const bulkResult = named(
  'JobBulkResult',
  object({
    done: integer({ description: 'How many jobs were changed' }),
    jobs: list(object({ id: text() }, { newId: text({ description: 'Of a redrive: the new job' }) })),
    skipped: list(object({ id: text(), reason: text() })),
    nextCursor: nullable(
      text({ description: 'With `filter`: there may be more; send the same again with this as `cursor`' }),
    ),
  }),
);

type FilterFields = { [K in keyof typeof filterFields]?: Static<(typeof filterFields)[K]> };

export function readFilter(given: FilterFields & { status?: JobSearchFilter['statuses'] }): JobSearchFilter {
  const { status: statuses, from, to, idPrefix, text: contained, fingerprint: group } = given;
  return {
    ...(statuses !== undefined && { statuses }),
    ...(from !== undefined && { from: readTime('from', from) }),
    ...(to !== undefined && { to: readTime('to', to) }),
    ...(idPrefix !== undefined && { idPrefix }),
    ...(contained !== undefined && { text: contained }),
    ...(group !== undefined && { fingerprint: group }),
  };
}

/** A leap second is valid in the format and no time for JavaScript. */
function readTime(name: string, value: string): number {
  const time = Date.parse(value);
  if (Number.isNaN(time)) throw schemaError([`$.${name}: is not a time`]);
  return time;
}

export function readJobCursor(given: string | undefined): number | undefined {
  const seq = given === undefined ? undefined : Number(given.slice(1));
  if (seq !== undefined && !Number.isSafeInteger(seq))
    throw schemaError(['$.cursor: is not a cursor of this list; start again without one']);
  return seq;
}

export function writeJobCursor(next: number | undefined): string | null {
  return next === undefined ? null : `j${next}`;
}

function serializeJob(job: Job, error: string | null): Omit<Static<typeof jobEntry>, 'inputPreview'> {
  const time = (at: number | null): string | null => (at === null ? null : isoTime(at));
  return {
    id: job.id,
    status: job.status,
    createdAt: isoTime(job.createdAt),
    startedAt: time(job.takenAt),
    endedAt: time(job.endedAt),
    delayTime: delayTime(job) ?? null,
    executionTime: executionTime(job) ?? null,
    workerId: job.workerId,
    retries: job.retries,
    error: error === null ? null : errorText(error),
    fingerprint: error === null ? null : errorFingerprint(error).fingerprint,
  };
}

export function serializeJobEntry(
  job: Job,
  error: string | null,
  request: string | undefined,
): Static<typeof jobEntry> {
  const input = request === undefined ? undefined : memberText(request, 'input');
  return { ...serializeJob(job, error), inputPreview: input?.slice(0, INPUT_PREVIEW_CHARS) ?? null };
}

export function serializeJobDetail({ job, payloads }: JobWithPayloads): Static<typeof jobDetail> {
  const { request, output, error } = payloads;
  const parsed = (json: string | null | undefined): unknown => JSON.parse(json ?? 'null');
  return {
    ...serializeJob(job, error),
    input: parsed(memberText(request, 'input')),
    output: parsed(output),
    errorDetail: parsed(error),
    webhook: job.webhook,
  };
}

export function serializeErrorGroup({ sample, firstSeen, lastSeen, ...group }: ErrorGroup) {
  return {
    ...group,
    firstSeen: isoTime(firstSeen),
    lastSeen: isoTime(lastSeen),
    sampleJobId: sample.job.id,
    sampleError: sample.error === null ? '' : errorText(sample.error),
  };
}
