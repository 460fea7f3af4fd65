import type { Job } from '../../domain/job-records.ts';
import { WAITING_JOB_SCALARS, waitingJobScalars, waitingJobFromValues } from '../tables/job-rows.ts';
import type { Value } from '../sql.ts';
import { unnest } from './column-arrays.ts';

/**
 * Places in the queue. Jobs of one queue (endpoint, priority, account) that came together share
 * one: a row that names them in their order, with all that a take wants to know of them, so
 * that handing them out reads and removes one row instead of as many as there are jobs. A
 * place goes by the position and number of its first job. Whoever is taken goes from the head: `gone`
 * counts them. A job that changes while it waits leaves the place that it shares for one of its own.
 */
export const QUEUE_BATCH_COLUMNS = [
  'endpoint_id',
  'low_priority',
  'account_id',
  'position',
  'seq',
  'queued_at',
  'ttl_at',
  'execution_timeout',
  'seqs',
  'jobs',
] as const;

/** More jobs than these, or larger, go into the next place: whoever changes one of them writes all anew. */
const MAX_QUEUE_BATCH_JOBS = 100;
const MAX_QUEUE_BATCH_CHARS = 32_768;
/** A larger request is read from the job's own row, when it is taken. */
const MAX_INLINE_REQUEST_CHARS = 2_048;

/** No JSON text holds these. */
const JOB_SEPARATOR = '\u001e';
const FIELD_SEPARATOR = '\u001f';
/** The first of them, in a statement. */
export const JOB_SEPARATOR_SQL = 'chr(30)';

/** A job on its way into the queue. Without its request, that is read when it is taken. */
export interface QueuedJob {
  job: Job;
  request?: string;
}

export interface QueueBatch {
  /** Of one queue, in their order. */
  entries: readonly QueuedJob[];
  jobs: string;
}

/** Each in a place of its own. */
export function singleJobBatch(arrival: QueuedJob): QueueBatch {
  return { entries: [arrival], jobs: encodeJob(arrival) };
}

/** Those of one queue share places, in the order of their numbers: so nobody's position may be another than its number. */
export function batchByQueue(arrivals: readonly QueuedJob[]): QueueBatch[] {
  return [
    ...Map.groupBy(arrivals, ({ job }) => `${job.endpointId} ${job.lowPriority} ${job.accountId}`).values(),
  ].flatMap((queue) => {
    const places: QueueBatch[] = [];
    let together: QueuedJob[] = [];
    let jobs = '';
    const close = (): void => {
      if (together.length > 0) places.push({ entries: together, jobs });
      [together, jobs] = [[], ''];
    };
    for (const arrival of queue.toSorted((one, other) => one.job.seq - other.job.seq)) {
      const text = encodeJob(arrival);
      if (together.length === MAX_QUEUE_BATCH_JOBS || jobs.length + text.length > MAX_QUEUE_BATCH_CHARS)
        close();
      jobs = together.length === 0 ? text : jobs + JOB_SEPARATOR + text;
      together.push(arrival);
    }
    close();
    return places;
  });
}

export function queueBatchValues({ entries, jobs }: QueueBatch): Value[] {
  const [{ job }] = entries as [QueuedJob];
  let [ttlAt, executionTimeout, seqs] = [Infinity, Infinity, ''];
  for (const { job: one } of entries) {
    ttlAt = Math.min(ttlAt, one.ttlAt);
    if (one.executionTimeout > 0) executionTimeout = Math.min(executionTimeout, one.executionTimeout);
    seqs = seqs === '' ? String(one.seq) : `${seqs},${one.seq}`;
  }
  return [
    job.endpointId,
    job.lowPriority ? 1 : 0,
    job.accountId,
    job.position,
    job.seq,
    job.queuedAt,
    ttlAt,
    executionTimeout === Infinity ? 0 : executionTimeout,
    `{${seqs}}`,
    jobs,
  ];
}

/** Writes the places of a batch, whose arrays begin at this parameter; `only` says which of those that are `given`. */
export function insertQueueBatchesSql(from = 1, only = 'true'): string {
  const given = QUEUE_BATCH_COLUMNS.map((column) =>
    column === 'seqs' ? 'given.seqs::bigint[]' : `given.${column}`,
  );
  return `insert into job_places (${QUEUE_BATCH_COLUMNS.join(', ')}, gone) select ${given.join(', ')}, 0 from ${unnest(QUEUE_BATCH_COLUMNS, from)} where ${only}`;
}

/** Where a job of a place stands in its queue: those who share it stand where their numbers say, and whoever has come back to a place of its own where the place says. */
export function positionSql(seq: string, place = ''): string {
  return `case when ${seq} = ${place}seq then ${place}position else ${seq} end`;
}

/** Jobs that wait, one row for each. */
export const WAITING_JOBS =
  '(select place.endpoint_id, waiting.seq from job_places as place, unnest(place.seqs[place.gone + 1:]) as waiting (seq))';

const TEXT_SCALARS: readonly string[] = ['id', 'account_id'];
/** Of the facts in their order: whether they are numbers. */
const IS_NUMBER_SCALAR = WAITING_JOB_SCALARS.map((fact) => !TEXT_SCALARS.includes(fact));

function encodeJob({ job, request = '' }: QueuedJob): string {
  // A webhook is whatever a client wrote; as JSON it holds nothing that tells jobs and fields apart.
  return `${waitingJobScalars(job).join(' ')}${FIELD_SEPARATOR}${JSON.stringify(job.webhook)}${FIELD_SEPARATOR}${request.length > MAX_INLINE_REQUEST_CHARS ? '' : request}`;
}

/** The jobs of a place, in their order. The request is empty where the place does not carry it. */
export function decodeQueueBatch(endpointId: string, jobs: string): { job: Job; request: string }[] {
  const reader = new QueueBatchReader(jobs);
  const known: Value[] = [];
  const read = [];
  while (!reader.isAtEnd) {
    for (let index = 0; index < IS_NUMBER_SCALAR.length; index += 1)
      known[index] = IS_NUMBER_SCALAR[index] === true ? reader.number() : reader.until(' ');
    const webhook = reader.until(FIELD_SEPARATOR);
    known[IS_NUMBER_SCALAR.length] = webhook === 'null' ? null : (JSON.parse(webhook) as string);
    known[IS_NUMBER_SCALAR.length + 1] = reader.until(JOB_SEPARATOR);
    read.push(waitingJobFromValues(endpointId, known));
  }
  return read;
}

const ZERO = 0x30;

/** Goes through what a place says, of which there is much: pieces that are only made to be read again cost more than to read them. */
class QueueBatchReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  /** A whole number of digits alone, and what follows it. */
  number(): number {
    let value = 0;
    for (;;) {
      const digit = this.#text.charCodeAt(this.#at) - ZERO;
      this.#at += 1;
      if (!(digit >= 0 && digit <= 9)) return value;
      value = value * 10 + digit;
    }
  }

  /** Up to this mark, or the end; goes on behind it. */
  until(mark: string): string {
    const found = this.#text.indexOf(mark, this.#at);
    const end = found === -1 ? this.#text.length : found;
    const text = this.#text.slice(this.#at, end);
    this.#at = end + 1;
    return text;
  }
}

/** Where a job waits: the key of its place, and its number. */
export const QUEUE_POSITION_COLUMNS = [
  'endpoint_id',
  'low_priority',
  'account_id',
  'position',
  'seq',
  'turn',
] as const;

/** `place`: whose place it shares. */
export function queuePositionValues(job: Job, place: number | null): Value[] {
  return [
    job.endpointId,
    job.lowPriority ? 1 : 0,
    job.accountId,
    place ?? job.position,
    place ?? job.seq,
    job.seq,
  ];
}

/** By place, who leaves it. */
const REMOVED_BY_BATCH = `(select endpoint_id, low_priority, account_id, position, seq, array_agg(turn) as seqs from ${unnest(QUEUE_POSITION_COLUMNS)} group by 1, 2, 3, 4, 5) as leaving`;
const SAME_QUEUE_BATCH = `place.endpoint_id = leaving.endpoint_id and place.low_priority = leaving.low_priority and place.account_id = leaving.account_id and place.position = leaving.position and place.seq = leaving.seq
  and place.seqs[place.gone + 1:] @> leaving.seqs`;

/** Places of which all leave go; they answer how many jobs that were. */
export const DELETE_EMPTIED_BATCHES = {
  name: 'leave places',
  text: `delete from job_places as place using ${REMOVED_BY_BATCH} where ${SAME_QUEUE_BATCH} and cardinality(place.seqs) - place.gone = cardinality(leaving.seqs) returning cardinality(leaving.seqs) as left`,
};

/** The others are written anew for those who stay. */
export const REWRITE_PARTIAL_BATCHES = {
  name: 'leave others',
  text: `update job_places as place set gone = 0,
      seqs = array(select job.seq from unnest(place.seqs) with ordinality as job (seq, nth) where job.nth > place.gone and job.seq <> all (leaving.seqs) order by job.nth),
      jobs = (select string_agg(job.text, ${JOB_SEPARATOR_SQL} order by job.nth) from unnest(string_to_array(place.jobs, ${JOB_SEPARATOR_SQL}), place.seqs) with ordinality as job (text, seq, nth) where job.nth > place.gone and job.seq <> all (leaving.seqs))
    from ${REMOVED_BY_BATCH} where ${SAME_QUEUE_BATCH} and cardinality(place.seqs) - place.gone > cardinality(leaving.seqs) returning cardinality(leaving.seqs) as left`,
};
