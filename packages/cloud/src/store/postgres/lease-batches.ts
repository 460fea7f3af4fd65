import type { Pool } from 'pg';
import type { Job } from '../../domain/job-records.ts';
import { JOB_SELECT_LENGTH, JOB_SELECT, jobFromValues, LEASE_COLUMNS } from '../tables/job-rows.ts';
import type { Value } from '../sql.ts';
import { inTransaction, withTransactionRetries, translateErrors } from './transactions.ts';

/**
 * What a take of many jobs hands out is one row, a bundle, instead of a lease for each of them.
 * As long as the bundle is there, its jobs are held by it or have ended: an end holds on to
 * the bundle while it writes, and whoever wants to change anything else of one of its jobs opens it first. Then
 * each job that is still held has a lease of its own.
 */
const IN_LEASE_BATCH =
  'exists (select 1 from job_bundles as bundle where bundle.endpoint_id = job.endpoint_id and job.seq = any (bundle.seqs))';

/** A job of `JOBS_AND_LEASES` as it is, and in whose place it waits, to be read by `seenJob`. What is selected behind it begins at `AFTER_SEEN`. */
export const JOB_READ_SELECT = `${JOB_SELECT}, job.place, (job.status = 'IN_QUEUE' and lease.seq is null and ${IN_LEASE_BATCH})`;
/** The same for whoever may change it: one that has ended must not wait again while a bundle names it. */
export const JOB_CHANGE_SELECT = `${JOB_SELECT}, job.place, ${IN_LEASE_BATCH}`;
export const JOB_READ_SELECT_LENGTH = JOB_SELECT_LENGTH + 2;

/** A job is in a bundle: it shows only once that is open. */
class JobInLeaseBatch extends Error {
  readonly endpointId: string;
  readonly seq: number;

  constructor({ endpointId, seq }: Job) {
    super('the job is in a bundle');
    this.endpointId = endpointId;
    this.seq = seq;
  }
}

export function jobFromRead(values: readonly Value[]): { job: Job; place: number | null } {
  const job = jobFromValues(values);
  if (values[JOB_SELECT_LENGTH + 1] as unknown) throw new JobInLeaseBatch(job);
  return { job, place: values[JOB_SELECT_LENGTH] as number | null };
}

/** When a lease of `job` that is just written has to be looked at. It agrees with what the rule of a take makes of the job. */
export function leaseDueAtSql(lookAt: string, takenAt: string): string {
  return `least(${lookAt}, job.ttl_at, ${takenAt} + nullif(job.execution_timeout, 0))`;
}

/** Which bundles to open: those of an endpoint, of one of its jobs, that are due, or all. */
type LeaseBatchFilter = { endpointId: string; seq?: number } | { dueBy: number } | 'all';

const SELECT_LEASE_BATCHES =
  'select endpoint_id, id from job_bundles where ($1::text is null or endpoint_id = $1) and ($2::bigint is null or $2 = any (seqs)) and ($3::bigint is null or due_at <= $3)';
/** A statement of its own: the ends that it waited for show only in the next one. */
const LOCK_LEASE_BATCHES = `${SELECT_LEASE_BATCHES} order by endpoint_id, id for update`;
const SPLIT_LEASE_BATCHES = `with opened as (delete from job_bundles where (endpoint_id, id) in (select * from unnest($1::text[], $2::text[])) returning *)
  insert into job_leases (${LEASE_COLUMNS.join(', ')})
  select held.seq, opened.endpoint_id, held.worker_id, held.lease, job.attempt + 1, opened.taken_at, ${leaseDueAtSql('opened.look_at', 'opened.taken_at')}
  from opened, unnest(opened.seqs, opened.workers, opened.leases) as held (seq, worker_id, lease),
    lateral (select attempt, ttl_at, execution_timeout from jobs where jobs.endpoint_id = opened.endpoint_id and jobs.seq = held.seq and jobs.status = 'IN_QUEUE' limit 1) as job`;

/** Opens bundles for whoever wants one of their jobs by itself. */
export class LeaseBatches {
  readonly #pool: Pool;
  readonly #onOpened: (ids: readonly string[]) => void;

  constructor(pool: Pool, onOpened: (ids: readonly string[]) => void) {
    this.#pool = pool;
    this.#onOpened = onOpened;
  }

  async split(which: LeaseBatchFilter): Promise<void> {
    this.#onOpened(await withTransactionRetries(() => splitLeaseBatches(this.#pool, which)));
  }

  /** Opens the bundles in which jobs are that the work meets, and begins it anew. */
  async splitAndRetry<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof JobInLeaseBatch)) throw error;
        await this.split(error);
      }
    }
  }
}

/** Answers which were opened. */
async function splitLeaseBatches(pool: Pool, which: LeaseBatchFilter): Promise<string[]> {
  const values =
    which === 'all'
      ? [null, null, null]
      : 'dueBy' in which
        ? [null, null, which.dueBy]
        : [which.endpointId, which.seq ?? null, null];
  // Most often there are none, and nothing has to be locked to know it.
  const { rows: found } = await translateErrors(pool.query(`${SELECT_LEASE_BATCHES} limit 1`, values));
  if (found.length === 0) return [];
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<[string, string]>({
      text: LOCK_LEASE_BATCHES,
      values,
      rowMode: 'array',
    });
    if (rows.length > 0)
      await client.query(SPLIT_LEASE_BATCHES, [
        rows.map(([endpointId]) => endpointId),
        rows.map(([, id]) => id),
      ]);
    return rows.map(([, id]) => id);
  });
}
