import type { JobStore } from '../job-store.ts';
import type { QueueContext } from './queue-context.ts';
import { inTransaction } from './transactions.ts';

const TABLES = [
  'jobs',
  'job_requests',
  'job_chunks',
  'job_counts',
  'job_history',
  'job_workers',
  'webhook_deliveries',
] as const;

/** Deletes everything of an endpoint. */
export function removeEndpoint({ statements, pool }: QueueContext): Pick<JobStore, 'removeEndpoint'> {
  const deletes = TABLES.map((table) =>
    statements.rows(`delete from ${table} where endpoint_id = :endpoint_id`),
  );
  return {
    removeEndpoint: (endpoint_id) =>
      inTransaction(pool, async (client) => {
        for (const remove of deletes) await remove({ endpoint_id }, client);
      }),
  };
}
