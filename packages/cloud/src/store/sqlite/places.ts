import { fairShare, inTurn, lastOf } from '../fair-share.ts';
import type { Job } from '../job-records.ts';
import { WAITING_COLUMNS, WAITING_JOB, waitingJobFrom, waitingValues } from '../job-rows.ts';
import type { TakenJob } from '../jobs.ts';
import { marks } from './statements.ts';
import type { Statements } from './statements.ts';

/** Places in the queue, one for each job that waits. Low priority stands behind, and accounts that share an endpoint are served in turn. */
export class Places {
  readonly #insert: ReturnType<Statements['writing']>;
  readonly #delete: ReturnType<Statements['writing']>;
  readonly #deleteHead: ReturnType<Statements['writing']>;
  readonly #head: ReturnType<Statements['selectArrays']>;
  readonly #nextAccount: ReturnType<Statements['select']>;
  /** Endpoints where nobody waits, as far as it is known. */
  readonly #empty = new Set<string>();
  /** The account that was served last, of endpoints where several wait: the next one goes first. */
  readonly #lastServed = new Map<string, string>();

  constructor(statements: Statements) {
    this.#insert = statements.writing(`insert into job_waiting (${WAITING_COLUMNS.join(', ')}) values (${marks(WAITING_COLUMNS.length)})`);
    this.#delete = statements.writing('delete from job_waiting where endpoint_id = ? and low_priority = ? and account_id = ? and position = ? and seq = ?');
    this.#deleteHead = statements.writing('delete from job_waiting where endpoint_id = ? and low_priority = ? and account_id = ? and (position, seq) <= (?, ?)');
    this.#head = statements.selectArrays(`select ${WAITING_JOB} from job_waiting as place cross join jobs as job
      where place.endpoint_id = ? and place.low_priority = ? and place.account_id = ? and job.seq = place.seq order by place.position, place.seq limit ?`);
    this.#nextAccount = statements.select('select account_id from job_waiting where endpoint_id = ? and low_priority = ? and account_id > ? order by account_id limit 1');
  }

  enter(job: Job): void {
    this.#insert().run(...waitingValues(job));
    this.#empty.delete(job.endpointId);
  }

  leave(job: Job): void {
    this.#delete().run(job.endpointId, job.lowPriority ? 1 : 0, job.accountId, job.position, job.seq);
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
      const queues = accounts.map((accountId) => this.#head.all(endpointId, lowPriority, accountId, left));
      const shares = fairShare(queues.map(({ length }) => length), left);
      if (accounts.length > 1) this.#lastServed.set(endpointId, lastOf(accounts, shares));
      for (const [index, queue] of queues.entries()) {
        const head = queue.slice(0, shares[index]).map((values) => waitingJobFrom(endpointId, values));
        const last = head.at(-1)?.job;
        if (last !== undefined) this.#deleteHead().run(endpointId, lowPriority, last.accountId, last.position, last.seq);
        found.push(...head);
      }
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

  #accounts(endpointId: string, lowPriority: number): string[] {
    const accounts: string[] = [];
    let after = '';
    for (;;) {
      const found = this.#nextAccount.get(endpointId, lowPriority, after) as { account_id: string } | undefined;
      if (found === undefined) return accounts;
      after = found.account_id;
      accounts.push(after);
    }
  }
}
