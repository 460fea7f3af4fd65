import { isPastRetention } from '../../domain/job-records.ts';
import type { JobStore } from '../job-store.ts';
import { JOB_SELECT, jobFromValues, MAX_DUE_SCANS, nextCheckAt } from '../tables/jobs.table.ts';
import type { QueueContext } from './queue-context.ts';

/**
 * Finds the jobs that time has something to do with, for the reaper: leases that have to be checked, by their
 * own index, and rows whose `next_check_at` has come. Of those, some are not due (they run, or their time to live
 * was extended) and are given their next moment.
 */
export function dueJobs({ statements, group }: QueueContext): Pick<JobStore, 'listDue'> {
  const selectLeases = statements.arrays(
    `select ${JOB_SELECT} from jobs as job indexed by jobs_leases
      where job.status = 'IN_PROGRESS' and job.due_at <= :now order by job.due_at limit :limit`,
  );
  const selectToCheck = statements.arrays(
    `select ${JOB_SELECT} from jobs as job where job.next_check_at <= :now order by job.next_check_at limit :limit`,
  );
  const checkAgain = statements.write('update jobs set next_check_at = :next_check_at where seq = :seq');

  return {
    listDue: (now, limit) =>
      group.run(() => {
        const due = selectLeases.all({ now, limit }).map(jobFromValues);
        for (let scans = 0; scans < MAX_DUE_SCANS && due.length < limit; scans += 1) {
          const found = selectToCheck.all({ now, limit }).map(jobFromValues);
          const later = found.filter((job) => job.status === 'IN_PROGRESS' || job.dueAt > now);
          for (const job of later)
            checkAgain({ seq: job.seq, next_check_at: Math.max(nextCheckAt(job, now), now + 1) });
          due.push(...found.filter((job) => !later.includes(job) && !isPastRetention(job, now)));
          if (later.length === 0 || found.length < limit) break;
        }
        return due;
      }),
  };
}
