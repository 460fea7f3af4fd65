import type { Job } from '../../domain/job-records.ts';
import { INSERTED_COLUMNS, nextCheckAt } from '../tables/job-rows.ts';
import type { Value } from '../sql.ts';

/** What is the same in every new job, or (`:`) the same as another column of it. Whatever need not be passed saves a call into SQLite. */
const DERIVED_COLUMNS: Partial<Record<(typeof INSERTED_COLUMNS)[number], string>> = {
  status: `'IN_QUEUE'`,
  position: ':seq',
  queued_at: ':created_at',
  due_at: ':ttl_at',
  retries: '0',
  attempt: '0',
  worker_id: 'null',
  taken_at: 'null',
  ended_at: 'null',
  drained: '0',
};
const BOUND_COLUMNS = INSERTED_COLUMNS.filter((column) => DERIVED_COLUMNS[column] === undefined);

/** The row of a new job, where there is none with its number. */
export const INSERT_JOB = `insert or ignore into jobs (${INSERTED_COLUMNS.join(', ')}) values (${INSERTED_COLUMNS.map(valueOf).join(', ')})`;

export function insertJobValues(
  job: Job,
  idempotency: { key: string; bodyHash: string } | undefined,
  request: string,
): Value[] {
  return [
    job.seq,
    job.endpointId,
    job.id,
    job.accountId,
    job.lowPriority ? 1 : 0,
    job.createdAt,
    job.ttlAt,
    job.ttl,
    job.executionTimeout,
    job.retention,
    job.retriesLeft,
    job.webhook,
    nextCheckAt(job, job.createdAt),
    idempotency?.key ?? null,
    idempotency?.bodyHash ?? null,
    request,
  ];
}

/** Only what is said twice has a number: at every run SQLite is asked for the name of each value, and goes through all that have one. */
function valueOf(column: (typeof INSERTED_COLUMNS)[number]): string {
  const known = DERIVED_COLUMNS[column] ?? '?';
  return known.startsWith(':') ? `?${BOUND_COLUMNS.findIndex((given) => known === `:${given}`) + 1}` : known;
}
