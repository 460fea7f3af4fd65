import { fairShare, inTurn, lastOf } from '../fair-share.ts';
import type { Job } from '../job-records.ts';
import { WAITING_JOB, waitingJobFrom } from '../job-rows.ts';
import type { TakenJob } from '../jobs.ts';
import type { Value } from '../sql.ts';
import type { Statements } from './statements.ts';

/** More than these go into the next place: a row of a longer list would not fit where its key is, and whoever leaves writes it anew. */
const MOST_TOGETHER = 50;

const OF_QUEUE = 'endpoint_id = ? and low_priority = ? and account_id = ?';
const PLACE = 'position, seq, queued_at, seqs';

/** Jobs that wait, one row for each. */
export const WAITING =
  '(select place.endpoint_id, coalesce(member.value, place.seq) as seq from job_waiting as place left join json_each(place.seqs) as member)';

/** Jobs of one endpoint, priority and account wait in one line. */
type Queue = [endpointId: string, lowPriority: number, accountId: string];

/** Where a job stands in its queue. */
interface Standing {
  position: number;
  seq: number;
}

interface Place {
  queuedAt: number;
  /** In their order. */
  members: Standing[];
}

/** The first places of a queue, and whoever stands in them in their order. */
interface Head {
  queue: Queue;
  places: Place[];
  line: Standing[];
}

/**
 * Places in the queue. Low priority stands behind, and accounts that share an endpoint are served
 * in turn. Jobs of one queue that came together share a place: a row that goes by the first of
 * them, with the numbers of all. Whoever leaves has the rest written anew, by whoever is the first of it; whoever
 * comes back has a place of its own.
 */
export class Places {
  readonly #insert: ReturnType<Statements['writing']>;
  readonly #delete: ReturnType<Statements['writing']>;
  readonly #deleteAlone: ReturnType<Statements['writing']>;
  readonly #deleteHead: ReturnType<Statements['writing']>;
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
    this.#insert = statements.writing(
      'insert into job_waiting (endpoint_id, low_priority, account_id, position, seq, queued_at, size, seqs) values (?, ?, ?, ?, ?, ?, ?, ?)',
    );
    this.#delete = statements.writing(
      `delete from job_waiting where ${OF_QUEUE} and position = ? and seq = ?`,
    );
    this.#deleteAlone = statements.writing(
      `delete from job_waiting where ${OF_QUEUE} and position = ? and seq = ? and seqs is null`,
    );
    this.#deleteHead = statements.writing(
      `delete from job_waiting where ${OF_QUEUE} and (position, seq) <= (?, ?)`,
    );
    this.#fromHead = statements.selectArrays(
      `select ${PLACE} from job_waiting where ${OF_QUEUE} order by position, seq`,
    );
    this.#ofEndpoint = statements.selectArrays(
      `select low_priority, account_id, ${PLACE} from job_waiting where endpoint_id = ? and seq <= ?`,
    );
    this.#sharedBackFrom = statements.selectArrays(
      `select ${PLACE} from job_waiting where ${OF_QUEUE} and (position, seq) <= (?, ?) and seqs is not null order by position desc, seq desc`,
    );
    this.#jobs = statements.selectArrays(
      `select ${WAITING_JOB} from json_each(?) as member cross join jobs as job where job.seq = member.value`,
    );
    this.#nextAccount = statements.select(
      'select account_id from job_waiting where endpoint_id = ? and low_priority = ? and account_id > ? order by account_id limit 1',
    );
  }

  enter(job: Job): void {
    this.#share([job]);
  }

  /** New jobs, which stand where their numbers say. */
  enterTogether(jobs: readonly Job[]): void {
    for (const line of Map.groupBy(jobs, (job) => queueOf(job).join(' ')).values()) {
      line.sort(inOrder);
      for (let from = 0; from < line.length; from += MOST_TOGETHER)
        this.#share(line.slice(from, from + MOST_TOGETHER));
    }
  }

  leave(job: Job): void {
    const queue = queueOf(job);
    if (this.#deleteAlone().run(...queue, job.position, job.seq).changes > 0) return;
    const place = this.#sharedBy(queue, job);
    if (place === undefined) return;
    const [first] = place.members as [Standing];
    this.#delete().run(...queue, first.position, first.seq);
    this.#write(
      queue,
      place.queuedAt,
      place.members.filter(({ seq }) => seq !== job.seq),
    );
  }

  /** Places up to this number of an endpoint go, with so many jobs or a few more. Answers their numbers. */
  leaveSome(endpointId: string, until: number, most: number): number[] {
    const found: number[] = [];
    const keys: Value[][] = [];
    for (const [lowPriority = 0, accountId = '', ...values] of this.#ofEndpoint.iterate(endpointId, until)) {
      if (found.length >= most) break;
      const { members } = placeFrom(values);
      found.push(...members.map(({ seq }) => seq));
      keys.push([endpointId, lowPriority, accountId, ...values.slice(0, 2)]);
    }
    for (const key of keys) this.#delete().run(...key);
    return found;
  }

  nobodyWaits(endpointId: string): boolean {
    if (this.#empty.has(endpointId)) return true;
    const nobody = this.#accounts(endpointId, 0).length === 0 && this.#accounts(endpointId, 1).length === 0;
    if (nobody) this.#empty.add(endpointId);
    return nobody;
  }

  /** Up to `wanted` jobs leave the head of the queue. */
  leaveHead(endpointId: string, wanted: number): TakenJob[] {
    const found: TakenJob[] = [];
    for (const lowPriority of [0, 1]) {
      const left = wanted - found.length;
      if (left <= 0) break;
      const accounts = inTurn(this.#accounts(endpointId, lowPriority), this.#lastServed.get(endpointId));
      const heads = accounts.map((accountId) => this.#head([endpointId, lowPriority, accountId], left));
      const shares = fairShare(
        heads.map(({ line }) => Math.min(line.length, left)),
        left,
      );
      if (accounts.length > 1) this.#lastServed.set(endpointId, lastOf(accounts, shares));
      for (const [index, head] of heads.entries()) found.push(...this.#leaveFirst(head, shares[index] ?? 0));
    }
    return found;
  }

  /** What was written is undone: whoever waits is to be looked for. */
  undo(): void {
    this.#empty.clear();
  }

  forgetEndpoint(endpointId: string): void {
    this.#empty.delete(endpointId);
    this.#lastServed.delete(endpointId);
  }

  /** The place that a job shares: most often the last that begins before it. */
  #sharedBy(queue: Queue, job: Job): Place | undefined {
    for (const values of this.#sharedBackFrom.iterate(...queue, job.position, job.seq)) {
      const place = placeFrom(values);
      if (place.members.some(({ seq }) => seq === job.seq)) return place;
    }
    return undefined;
  }

  /** As many places as hold the first of a queue: behind them nobody stands before the last of those who are wanted. */
  #head(queue: Queue, wanted: number): Head {
    const places: Place[] = [];
    const line: Standing[] = [];
    let last = 0;
    for (const values of this.#fromHead.iterate(...queue)) {
      const place = placeFrom(values);
      if (line.length >= wanted && (place.members[0] as Standing).position > last) break;
      places.push(place);
      line.push(...place.members);
      last = Math.max(last, (place.members.at(-1) as Standing).position);
    }
    return { queue, places, line: line.sort(inOrder) };
  }

  /** All places that begin with one of those who leave go, and the rest of them is written anew. */
  #leaveFirst({ queue, places, line }: Head, count: number): TakenJob[] {
    const leaving = line.slice(0, count);
    const last = leaving.at(-1);
    if (last === undefined) return [];
    this.#deleteHead().run(...queue, last.position, last.seq);
    for (const { queuedAt, members } of places) {
      const rest = members.filter((member) => inOrder(member, last) > 0);
      if (rest.length < members.length) this.#write(queue, queuedAt, rest);
    }
    return this.#jobs
      .all(JSON.stringify(leaving.map(({ seq }) => seq)))
      .map((values) => waitingJobFrom(queue[0], values));
  }

  #share(jobs: readonly Job[]): void {
    const [first] = jobs as [Job];
    this.#write(queueOf(first), first.queuedAt, jobs);
    this.#empty.delete(first.endpointId);
  }

  /** Where nobody is left, there is no place. */
  #write(queue: Queue, queuedAt: number, members: readonly Standing[]): void {
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

function placeFrom(values: readonly Value[]): Place {
  const [position, seq, queuedAt, seqs] = values as [number, number, number, string | null];
  const members =
    seqs === null
      ? [{ position, seq }]
      : (JSON.parse(seqs) as number[]).map((member) => ({ position: member, seq: member }));
  return { queuedAt, members };
}

function inOrder(one: Standing, other: Standing): number {
  return one.position - other.position || one.seq - other.seq;
}
