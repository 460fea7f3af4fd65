import { JOB_SEARCH } from '../../domain/limits.ts';
import type { JobStore } from '../job-store.ts';
import {
  FOUND_SELECT,
  foundJobFromValues,
  matchingRows,
  scannedRows,
  searchIndex,
  searchValues,
  type SearchIndex,
} from '../tables/job-search.table.ts';
import { withRequests } from '../tables/jobs.table.ts';
import type { QueueContext } from './queue-context.ts';

const INDEXES: Record<SearchIndex, string> = {
  all: 'jobs_by_endpoint',
  running: 'jobs_running',
  waiting: 'jobs_waiting',
  failed: 'jobs_failed',
};
const CONTAINS_TEXT = `instr(lower(substr(request.request, 1, ${JOB_SEARCH.textChars})), :text) > 0`;

/** The search through the jobs of an endpoint. */
export function searchJobs({ statements, group }: QueueContext): Pick<JobStore, 'search'> {
  const countWaiting = statements.rows<{ count: number }>(
    `select count(*) as count from (select 1 from jobs indexed by jobs_waiting
      where endpoint_id = :endpoint_id and status = 'IN_QUEUE' limit :limit)`,
  );
  return {
    search: (endpoint_id, query) =>
      group.readUnsynced(() => {
        const { maxRowsScanned, limit } = query;
        const waiting = Number(countWaiting.get({ endpoint_id, limit: maxRowsScanned })?.count);
        const index = searchIndex(query, waiting < maxRowsScanned);
        const jobs = `jobs as job indexed by ${INDEXES[index]}`;
        const values = searchValues(endpoint_id, query);
        const last = statements
          .rows<{ seq: number }>(
            `select job.seq from ${jobs} where ${scannedRows(index)} order by job.seq desc limit 1 offset :offset`,
          )
          .get({ ...values, offset: maxRowsScanned - 1 });
        const found = statements
          .arrays(
            `select ${FOUND_SELECT} from ${withRequests(jobs)} where ${scannedRows(index)} and job.seq >= :last
              and ${matchingRows(query, CONTAINS_TEXT)} order by job.seq desc limit :limit`,
          )
          .all({ ...values, last: last?.seq ?? 0, limit })
          .map(foundJobFromValues);
        return { jobs: found, next: found.length === limit ? found.at(-1)?.job.seq : last?.seq };
      }),
  };
}
