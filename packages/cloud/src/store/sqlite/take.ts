import { fairShare, lastServed, rotateAfter } from '../../domain/fair-share.ts';
import type { Claim, Job, TakenJob, TakeRequest } from '../../domain/job-records.ts';
import { countDeltas } from '../job-store.ts';
import type { JobStore } from '../job-store.ts';
import {
  JOB_SELECT,
  JOB_SELECT_LENGTH,
  jobFromValues,
  jobValues,
  withRequests,
} from '../tables/jobs.table.ts';
import type { QueueContext } from './queue-context.ts';
import { assignments } from './statements.ts';

/** What a take changes of a job. No other index than those of waiting and running jobs has to learn of it. */
const TAKEN_COLUMNS = ['status', 'attempt', 'lease', 'worker_id', 'taken_at', 'due_at'] as const;

/** The jobs of one account and priority that wait, in their order. The index `jobs_waiting` has them so. */
const WAITING = `job.endpoint_id = :endpoint_id and job.low_priority = :low_priority and job.account_id = :account_id
  and job.status = 'IN_QUEUE'`;

/** A waiting job, and its request. */
interface WaitingJob {
  job: Job;
  request: string;
}

/**
 * Hands out jobs. A take runs after everything else of its turn, so it sees the jobs that were submitted with
 * it, and resolves when it is committed, before the disk has it: a power cut in between leaves the job
 * waiting, and a worker that has it finds that its lease is gone.
 */
export function takeJobs({ statements, group, counts }: QueueContext): Pick<JobStore, 'take'> {
  const selectNextAccount = statements.arrays(
    `select account_id from jobs indexed by jobs_waiting
      where endpoint_id = :endpoint_id and low_priority = :low_priority and account_id > :after and status = 'IN_QUEUE'
      order by account_id limit 1`,
  );
  const countWaiting = statements.arrays(
    `select count(*) from (select 1 from jobs as job indexed by jobs_waiting where ${WAITING} limit :limit)`,
  );
  const selectWaiting = statements.arrays(
    `select ${JOB_SELECT}, request.request from ${withRequests('jobs as job indexed by jobs_waiting')}
      where ${WAITING} order by job.position, job.seq limit :limit`,
  );
  const startAttempt = statements.write(`update jobs set ${assignments(TAKEN_COLUMNS)} where seq = :seq`);
  /** The account that was served last on endpoints where several wait: the next take begins after it. */
  const servedLast = new Map<string, string>();

  function accountsWaiting(endpoint_id: string, low_priority: number): string[] {
    const accounts: string[] = [];
    let after = '';
    for (;;) {
      const found = selectNextAccount.get({ endpoint_id, low_priority, after });
      if (found === undefined) return accounts;
      after = found[0] as string;
      accounts.push(after);
    }
  }

  /** The first jobs of a priority, shared fairly among the accounts that wait. */
  function firstOf(endpoint_id: string, low_priority: number, wanted: number): WaitingJob[] {
    const accounts = rotateAfter(accountsWaiting(endpoint_id, low_priority), servedLast.get(endpoint_id));
    const queues = accounts.map((account_id) => ({ endpoint_id, low_priority, account_id }));
    let shares = [wanted];
    if (accounts.length > 1) {
      const waiting = queues.map((queue) => countWaiting.get({ ...queue, limit: wanted })?.[0] as number);
      shares = fairShare(waiting, wanted);
      servedLast.set(endpoint_id, lastServed(accounts, shares));
    }
    return queues.flatMap((queue, index) =>
      selectWaiting.all({ ...queue, limit: shares[index] ?? 0 }).map((values) => ({
        job: jobFromValues(values),
        request: values[JOB_SELECT_LENGTH] as string,
      })),
    );
  }

  function take(endpointId: string, { claims: getClaims, startAttempt: start }: TakeRequest): TakenJob[] {
    const claims = getClaims();
    const waiting = firstOf(endpointId, 0, claims.length);
    if (waiting.length < claims.length)
      waiting.push(...firstOf(endpointId, 1, claims.length - waiting.length));
    return waiting.map(({ job: before, request }, index) => {
      const { job } = start(before, claims[index] as Claim);
      startAttempt(jobValues(job));
      counts.add(endpointId, countDeltas(before, job));
      return { job, request };
    });
  }

  return { take: (endpointId, request) => group.runLast(() => take(endpointId, request)) };
}
