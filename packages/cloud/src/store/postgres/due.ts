import { isPastRetention } from '../../domain/job-records.ts';
import type { JobStore } from '../job-store.ts';
import { JOB_SELECT, jobFromValues, MAX_DUE_SCANS, nextCheckAt } from '../tables/jobs.table.ts';
import { columnArrays, unnest } from './column-arrays.ts';
import type { QueueContext } from './queue-context.ts';

const CHECK_COLUMNS = ['endpoint_id', 'seq', 'next_check_at'] as const;

/**
 * Finds the jobs with a deadline that has passed, for the reaper: of the running jobs, which are few and have
 * an index, those whose `due_at` has come, and of all others those whose `next_check_at` has come. Some of the
 * latter are not due (they ran for long before they ended, or their time to live was extended) and get a new
 * `next_check_at`.
 */
export function dueJobs({ statements }: QueueContext): Pick<JobStore, 'listDue'> {
  const selectLeases = statements.arrays(
    `select ${JOB_SELECT} from jobs as job where job.status = 'IN_PROGRESS' and job.due_at <= :now
      order by job.due_at limit :limit`,
  );
  const selectToCheck = statements.arrays(
    `select ${JOB_SELECT} from jobs as job where job.next_check_at <= :now and job.status <> 'IN_PROGRESS'
      order by job.next_check_at limit :limit`,
  );
  /**
   * A row that another server just changes is left to it. The time to live may have become shorter since the
   * row was read.
   */
  const checkAgain = statements.rows(
    `update jobs set next_check_at = greatest(least(given.next_check_at, jobs.ttl_at), :now::bigint + 1)
      from (select locked.* from ${unnest(CHECK_COLUMNS)}, lateral (select given.* from jobs
        where jobs.endpoint_id = given.endpoint_id and jobs.seq = given.seq for update skip locked) as locked) as given
      where jobs.endpoint_id = given.endpoint_id and jobs.seq = given.seq`,
  );

  return {
    listDue: async (now, limit) => {
      const due = (await selectLeases({ now, limit })).map(jobFromValues);
      for (let scans = 0; scans < MAX_DUE_SCANS && due.length < limit; scans += 1) {
        const found = (await selectToCheck({ now, limit })).map(jobFromValues);
        const later = found.filter((job) => job.dueAt > now);
        due.push(...found.filter((job) => !later.includes(job) && !isPastRetention(job, now)));
        if (later.length > 0) {
          const rows = later.map((job) => ({
            endpoint_id: job.endpointId,
            seq: job.seq,
            next_check_at: nextCheckAt(job, now),
          }));
          await checkAgain({ ...columnArrays(rows, CHECK_COLUMNS), now });
        }
        if (later.length === 0 || found.length < limit) break;
      }
      return due;
    },
  };
}
