import { JOB_SEARCH } from '../../domain/limits.ts';
import type { JobStore } from '../job-store.ts';
import {
  FOUND_SELECT,
  foundJobFromValues,
  matchingRows,
  scannedRows,
  searchIndex,
  searchValues,
} from '../tables/job-search.table.ts';
import { withRequests } from '../tables/jobs.table.ts';
import type { QueueContext } from './queue-context.ts';

/** In the C locale, `lower` changes ASCII letters only, as on SQLite. */
const CONTAINS_TEXT = `strpos(lower(substr(request.request, 1, ${JOB_SEARCH.textChars}) collate "C"), :text) > 0`;

/** The search through the jobs of an endpoint. */
export function searchJobs({ statements }: QueueContext): Pick<JobStore, 'search'> {
  const countWaiting = statements.rows<{ count: number }>(
    `select count(*) as count from (select 1 from jobs
      where endpoint_id = :endpoint_id and status = 'IN_QUEUE' limit :limit) as waiting`,
  );
  return {
    search: async (endpoint_id, query) => {
      const { maxRowsScanned, limit } = query;
      const [waiting] = await countWaiting({ endpoint_id, limit: maxRowsScanned });
      const index = searchIndex(query, Number(waiting?.count) < maxRowsScanned);
      const values = searchValues(endpoint_id, query);
      const [last] = await statements.rows<{ seq: number }>(
        `select job.seq from jobs as job where ${scannedRows(index)} order by job.seq desc limit 1 offset :offset`,
      )({ ...values, offset: maxRowsScanned - 1 });
      const rows = await statements.arrays(
        `select ${FOUND_SELECT} from ${withRequests()} where ${scannedRows(index)} and job.seq >= :last
          and ${matchingRows(query, CONTAINS_TEXT)} order by job.seq desc limit :limit`,
      )({ ...values, last: last?.seq ?? 0, limit });
      const found = rows.map(foundJobFromValues);
      return { jobs: found, next: found.length === limit ? found.at(-1)?.job.seq : last?.seq };
    },
  };
}
