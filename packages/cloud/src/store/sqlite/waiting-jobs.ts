import { fairShare, rotateAfter, lastServed } from '../../domain/fair-share.ts';
import type { Job, TakenJob } from '../../domain/job-records.ts';
import { WAITING_JOB_SELECT, waitingJobFromValues } from '../tables/job-rows.ts';
import type { Value } from '../sql.ts';
import type { Statements } from './statements.ts';

/** More than these go into the next place: a row of a longer list would not fit where its key is, and whoever leaves writes it anew. */
const MAX_QUEUE_BATCH_JOBS = 50;

const QUEUE_CONDITION = 'endpoint_id = ? and low_priority = ? and account_id = ?';
const BATCH_COLUMNS = 'position, seq, queued_at, seqs';

/** Jobs that wait, one row for each. */
export const WAITING_JOBS =
  '(select place.endpoint_id, coalesce(member.value, place.seq) as seq from job_waiting as place left join json_each(place.seqs) as member)';

/** Jobs of one endpoint, priority and account wait in one line. */
type Queue = [endpointId: string, lowPriority: number, accountId: string];

/** Where a job stands in its queue. */
interface QueuePosition {
  position: number;
  seq: number;
}

interface WaitingBatch {
  queuedAt: number;
  /** In their order. */
  members: QueuePosition[];
}

/** The first places of a queue, and whoever stands in them in their order. */
interface QueueHead {
  queue: Queue;
  places: WaitingBatch[];
  line: QueuePosition[];
}

/**
 * Places in the queue. Low priority stands behind, and accounts that share an endpoint are served
 * in turn. Jobs of one queue that came together share a place: a row that goes by the first of
 * them, with the numbers of all. Whoever leaves has the rest written anew, by whoever is the first of it; whoever
 * comes back has a place of its own.
 */
export class WaitingJobs {
  readonly #insert: ReturnType<Statements['write']>;
  readonly #delete: ReturnType<Statements['write']>;
  readonly #deleteAlone: ReturnType<Statements['write']>;
  readonly #deleteHead: ReturnType<Statements['write']>;
  readonly #fromHead: ReturnType<Statements['selectArrays']>;
  readonly #ofEndpoint: ReturnType<Statements['selectArrays']>;
  readonly #sharedBackFrom: ReturnType<Statements['selectArrays']>;
  readonly #jobs: ReturnType<Statements['selectArrays']>;
  readonly #nextAccount: ReturnType<Statements['select']>;
  /** Endpoints where nobody waits, as far as it is known. */
  readonly #empty = new Set<string>();
  /** The account that was served last, of endpoints where several wait: the next one goes first. */
  readonly #lastServed = new Map<string, string>();

  constructor(statements: Statements) {
    this.#insert = statements.write(
      'insert into job_waiting (endpoint_id, low_priority, account_id, position, seq, queued_at, size, seqs) values (?, ?, ?, ?, ?, ?, ?, ?)',
    );
    this.#delete = statements.write(
      `delete from job_waiting where ${QUEUE_CONDITION} and position = ? and seq = ?`,
    );
    this.#deleteAlone = statements.write(
      `delete from job_waiting where ${QUEUE_CONDITION} and position = ? and seq = ? and seqs is null`,
    );
    this.#deleteHead = statements.write(
      `delete from job_waiting where ${QUEUE_CONDITION} and (position, seq) <= (?, ?)`,
    );
    this.#fromHead = statements.selectArrays(
      `select ${BATCH_COLUMNS} from job_waiting where ${QUEUE_CONDITION} order by position, seq`,
    );
    this.#ofEndpoint = statements.selectArrays(
      `select low_priority, account_id, ${BATCH_COLUMNS} from job_waiting where endpoint_id = ? and seq <= ?`,
    );
    this.#sharedBackFrom = statements.selectArrays(
      `select ${BATCH_COLUMNS} from job_waiting where ${QUEUE_CONDITION} and (position, seq) <= (?, ?) and seqs is not null order by position desc, seq desc`,
    );
    this.#jobs = statements.selectArrays(
      `select ${WAITING_JOB_SELECT} from json_each(?) as member cross join jobs as job where job.seq = member.value`,
    );
    this.#nextAccount = statements.select(
      'select account_id from job_waiting where endpoint_id = ? and low_priority = ? and account_id > ? order by account_id limit 1',
    );
  }

  add(job: Job): void {
    this.#share([job]);
  }

  /** New jobs, which stand where their numbers say. */
  addAll(jobs: readonly Job[]): void {
    for (const line of Map.groupBy(jobs, (job) => queueOf(job).join(' ')).values()) {
      line.sort(byPosition);
      for (let from = 0; from < line.length; from += MAX_QUEUE_BATCH_JOBS)
        this.#share(line.slice(from, from + MAX_QUEUE_BATCH_JOBS));
    }
  }

  remove(job: Job): void {
    const queue = queueOf(job);
    if (this.#deleteAlone().run(...queue, job.position, job.seq).changes > 0) return;
    const place = this.#sharedBy(queue, job);
    if (place === undefined) return;
    const [first] = place.members as [QueuePosition];
    this.#delete().run(...queue, first.position, first.seq);
    this.#write(
      queue,
      place.queuedAt,
      place.members.filter(({ seq }) => seq !== job.seq),
    );
  }

  /** Places up to this number of an endpoint go, with so many jobs or a few more. Answers their numbers. */
  removeUpTo(endpointId: string, until: number, most: number): number[] {
    const found: number[] = [];
    const keys: Value[][] = [];
    for (const [lowPriority = 0, accountId = '', ...values] of this.#ofEndpoint.iterate(endpointId, until)) {
      if (found.length >= most) break;
      const { members } = batchFromValues(values);
      found.push(...members.map(({ seq }) => seq));
      keys.push([endpointId, lowPriority, accountId, ...values.slice(0, 2)]);
    }
    for (const key of keys) this.#delete().run(...key);
    return found;
  }

  isEmpty(endpointId: string): boolean {
    if (this.#empty.has(endpointId)) return true;
    const nobody = this.#accounts(endpointId, 0).length === 0 && this.#accounts(endpointId, 1).length === 0;
    if (nobody) this.#empty.add(endpointId);
    return nobody;
  }

  /** Up to `wanted` jobs leave the head of the queue. */
  takeHead(endpointId: string, wanted: number): TakenJob[] {
    const found: TakenJob[] = [];
    for (const lowPriority of [0, 1]) {
      const left = wanted - found.length;
      if (left <= 0) break;
      const accounts = rotateAfter(this.#accounts(endpointId, lowPriority), this.#lastServed.get(endpointId));
      const heads = accounts.map((accountId) => this.#head([endpointId, lowPriority, accountId], left));
      const shares = fairShare(
        heads.map(({ line }) => Math.min(line.length, left)),
        left,
      );
      if (accounts.length > 1) this.#lastServed.set(endpointId, lastServed(accounts, shares));
      for (const [index, head] of heads.entries()) found.push(...this.#leaveFirst(head, shares[index] ?? 0));
    }
    return found;
  }

  /** What was written is undone: whoever waits is to be looked for. */
  discard(): void {
    this.#empty.clear();
  }

  deleteEndpoint(endpointId: string): void {
    this.#empty.delete(endpointId);
    this.#lastServed.delete(endpointId);
  }

  /** The place that a job shares: most often the last that begins before it. */
  #sharedBy(queue: Queue, job: Job): WaitingBatch | undefined {
    for (const values of this.#sharedBackFrom.iterate(...queue, job.position, job.seq)) {
      const place = batchFromValues(values);
      if (place.members.some(({ seq }) => seq === job.seq)) return place;
    }
    return undefined;
  }

  /** As many places as hold the first of a queue: behind them nobody stands before the last of those who are wanted. */
  #head(queue: Queue, wanted: number): QueueHead {
    const places: WaitingBatch[] = [];
    const line: QueuePosition[] = [];
    let last = 0;
    for (const values of this.#fromHead.iterate(...queue)) {
      const place = batchFromValues(values);
      if (line.length >= wanted && (place.members[0] as QueuePosition).position > last) break;
      places.push(place);
      line.push(...place.members);
      last = Math.max(last, (place.members.at(-1) as QueuePosition).position);
    }
    return { queue, places, line: line.sort(byPosition) };
  }

  /** All places that begin with one of those who leave go, and the rest of them is written anew. */
  #leaveFirst({ queue, places, line }: QueueHead, count: number): TakenJob[] {
    const leaving = line.slice(0, count);
    const last = leaving.at(-1);
    if (last === undefined) return [];
    this.#deleteHead().run(...queue, last.position, last.seq);
    for (const { queuedAt, members } of places) {
      const rest = members.filter((member) => byPosition(member, last) > 0);
      if (rest.length < members.length) this.#write(queue, queuedAt, rest);
    }
    return this.#jobs
      .all(JSON.stringify(leaving.map(({ seq }) => seq)))
      .map((values) => waitingJobFromValues(queue[0], values));
  }

  #share(jobs: readonly Job[]): void {
    const [first] = jobs as [Job];
    this.#write(queueOf(first), first.queuedAt, jobs);
    this.#empty.delete(first.endpointId);
  }

  /** Where nobody is left, there is no place. */
  #write(queue: Queue, queuedAt: number, members: readonly QueuePosition[]): void {
    const [first] = members;
    if (first === undefined) return;
    const seqs = members.length === 1 ? null : JSON.stringify(members.map(({ seq }) => seq));
    this.#insert().run(...queue, first.position, first.seq, queuedAt, members.length, seqs);
  }

  #accounts(endpointId: string, lowPriority: number): string[] {
    const accounts: string[] = [];
    let after = '';
    for (;;) {
      const found = this.#nextAccount.get(endpointId, lowPriority, after) as
        | { account_id: string }
        | undefined;
      if (found === undefined) return accounts;
      after = found.account_id;
      accounts.push(after);
    }
  }
}

function queueOf({ endpointId, lowPriority, accountId }: Job): Queue {
  return [endpointId, lowPriority ? 1 : 0, accountId];
}

function batchFromValues(values: readonly Value[]): WaitingBatch {
  const [position, seq, queuedAt, seqs] = values as [number, number, number, string | null];
  const members =
    seqs === null
      ? [{ position, seq }]
      : (JSON.parse(seqs) as number[]).map((member) => ({ position: member, seq: member }));
  return { queuedAt, members };
}

function byPosition(one: QueuePosition, other: QueuePosition): number {
  return one.position - other.position || one.seq - other.seq;
}
