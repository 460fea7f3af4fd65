/** Adds to the counts of endpoints, from a query with the columns of the table. Each server writes in lanes of its own, so that two never wait for the same row. */
export const ADD_COUNTS = (source: string): string => `insert into job_counts (endpoint_id, lane, queued, running, completed, failed, retried) ${source}
  on conflict (endpoint_id, lane) do update set queued = job_counts.queued + excluded.queued, running = job_counts.running + excluded.running,
    completed = job_counts.completed + excluded.completed, failed = job_counts.failed + excluded.failed, retried = job_counts.retried + excluded.retried`;
