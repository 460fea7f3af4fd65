import type { Job } from '../job-records.ts';
import { WAITING_FACTS, waitingFacts, waitingJobFrom } from '../job-rows.ts';
import type { Value } from '../sql.ts';
import { unnest } from './arrays.ts';

/**
 * Places in the queue. Jobs of one queue (endpoint, priority, account) that came together share
 * one: a row that names them in their order, with all that a take wants to know of them, so
 * that handing them out reads and removes one row instead of as many as there are jobs. A
 * place goes by the position and number of its first job. Whoever is taken goes from the head: `gone`
 * counts them. A job that changes while it waits leaves the place that it shares for one of its own.
 */
export const PLACE_COLUMNS = [
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
const MOST_TOGETHER = 100;
const LARGEST_TOGETHER = 32_768;
/** A larger request is read from the job's own row, when it is taken. */
const LARGEST_CARRIED = 2_048;

/** No JSON text holds these. */
const BETWEEN_JOBS = '\u001e';
const BETWEEN_FIELDS = '\u001f';
/** The first of them, in a statement. */
export const JOBS_APART = 'chr(30)';

/** A job on its way into the queue. Without its request, that is read when it is taken. */
export interface Arrival {
  job: Job;
  request?: string;
}

export interface Place {
  /** Of one queue, in their order. */
  arrivals: readonly Arrival[];
  jobs: string;
}

/** Each in a place of its own. */
export function placeAlone(arrival: Arrival): Place {
  return { arrivals: [arrival], jobs: written(arrival) };
}

/** Those of one queue share places, in the order of their numbers: so nobody's position may be another than its number. */
export function placesTogether(arrivals: readonly Arrival[]): Place[] {
  return [
    ...Map.groupBy(arrivals, ({ job }) => `${job.endpointId} ${job.lowPriority} ${job.accountId}`).values(),
  ].flatMap((queue) => {
    const places: Place[] = [];
    let together: Arrival[] = [];
    let jobs = '';
    const close = (): void => {
      if (together.length > 0) places.push({ arrivals: together, jobs });
      [together, jobs] = [[], ''];
    };
    for (const arrival of queue.toSorted((one, other) => one.job.seq - other.job.seq)) {
      const text = written(arrival);
      if (together.length === MOST_TOGETHER || jobs.length + text.length > LARGEST_TOGETHER) close();
      jobs = together.length === 0 ? text : jobs + BETWEEN_JOBS + text;
      together.push(arrival);
    }
    close();
    return places;
  });
}

export function placeValues({ arrivals, jobs }: Place): Value[] {
  const [{ job }] = arrivals as [Arrival];
  let [ttlAt, executionTimeout, seqs] = [Infinity, Infinity, ''];
  for (const { job: one } of arrivals) {
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
export function insertPlaces(from = 1, only = 'true'): string {
  const given = PLACE_COLUMNS.map((column) =>
    column === 'seqs' ? 'given.seqs::bigint[]' : `given.${column}`,
  );
  return `insert into job_places (${PLACE_COLUMNS.join(', ')}, gone) select ${given.join(', ')}, 0 from ${unnest(PLACE_COLUMNS, from)} where ${only}`;
}

/** Where a job of a place stands in its queue: those who share it stand where their numbers say, and whoever has come back to a place of its own where the place says. */
export function positionOf(seq: string, place = ''): string {
  return `case when ${seq} = ${place}seq then ${place}position else ${seq} end`;
}

/** Jobs that wait, one row for each. */
export const WAITING =
  '(select place.endpoint_id, waiting.seq from job_places as place, unnest(place.seqs[place.gone + 1:]) as waiting (seq))';

const TEXTS: readonly string[] = ['id', 'account_id'];
/** Of the facts in their order: whether they are numbers. */
const ARE_NUMBERS = WAITING_FACTS.map((fact) => !TEXTS.includes(fact));

function written({ job, request = '' }: Arrival): string {
  // A webhook is whatever a client wrote; as JSON it holds nothing that tells jobs and fields apart.
  return `${waitingFacts(job).join(' ')}${BETWEEN_FIELDS}${JSON.stringify(job.webhook)}${BETWEEN_FIELDS}${request.length > LARGEST_CARRIED ? '' : request}`;
}

/** The jobs of a place, in their order. The request is empty where the place does not carry it. */
export function readPlace(endpointId: string, jobs: string): { job: Job; request: string }[] {
  const reader = new PlaceReader(jobs);
  const known: Value[] = [];
  const read = [];
  while (!reader.isAtEnd) {
    for (let index = 0; index < ARE_NUMBERS.length; index += 1)
      known[index] = ARE_NUMBERS[index] === true ? reader.number() : reader.until(' ');
    const webhook = reader.until(BETWEEN_FIELDS);
    known[ARE_NUMBERS.length] = webhook === 'null' ? null : (JSON.parse(webhook) as string);
    known[ARE_NUMBERS.length + 1] = reader.until(BETWEEN_JOBS);
    read.push(waitingJobFrom(endpointId, known));
  }
  return read;
}

const ZERO = 0x30;

/** Goes through what a place says, of which there is much: pieces that are only made to be read again cost more than to read them. */
class PlaceReader {
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
export const STANDING = ['endpoint_id', 'low_priority', 'account_id', 'position', 'seq', 'turn'] as const;

/** `place`: whose place it shares. */
export function standingValues(job: Job, place: number | null): Value[] {
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
const LEAVING = `(select endpoint_id, low_priority, account_id, position, seq, array_agg(turn) as seqs from ${unnest(STANDING)} group by 1, 2, 3, 4, 5) as leaving`;
const SAME_PLACE = `place.endpoint_id = leaving.endpoint_id and place.low_priority = leaving.low_priority and place.account_id = leaving.account_id and place.position = leaving.position and place.seq = leaving.seq
  and place.seqs[place.gone + 1:] @> leaving.seqs`;

/** Places of which all leave go; they answer how many jobs that were. */
export const LEAVE_PLACES = {
  name: 'leave places',
  text: `delete from job_places as place using ${LEAVING} where ${SAME_PLACE} and cardinality(place.seqs) - place.gone = cardinality(leaving.seqs) returning cardinality(leaving.seqs) as left`,
};

/** The others are written anew for those who stay. */
export const LEAVE_OTHERS = {
  name: 'leave others',
  text: `update job_places as place set gone = 0,
      seqs = array(select job.seq from unnest(place.seqs) with ordinality as job (seq, nth) where job.nth > place.gone and job.seq <> all (leaving.seqs) order by job.nth),
      jobs = (select string_agg(job.text, ${JOBS_APART} order by job.nth) from unnest(string_to_array(place.jobs, ${JOBS_APART}), place.seqs) with ordinality as job (text, seq, nth) where job.nth > place.gone and job.seq <> all (leaving.seqs))
    from ${LEAVING} where ${SAME_PLACE} and cardinality(place.seqs) - place.gone > cardinality(leaving.seqs) returning cardinality(leaving.seqs) as left`,
};
