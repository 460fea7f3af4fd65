import {
  DELIVERY_COLUMNS,
  deliveryFromRow,
  deliveryValues,
  DELIVERY_ENTRY_COLUMNS,
  deliveryEntryFromRow,
  idsWithinBytes,
} from '../tables/job-rows.ts';
import type { JobStore } from '../job-store.ts';
import type { PoolQueries } from './pool-queries.ts';

export const SAVE_DELIVERY = `insert into webhook_deliveries (${DELIVERY_COLUMNS.join(', ')}) values (${DELIVERY_COLUMNS.map((_, index) => `$${index + 1}`).join(', ')})
  on conflict (id) do update set ${DELIVERY_COLUMNS.slice(1)
    .map((column) => `${column} = excluded.${column}`)
    .join(', ')}`;

/** The webhooks of jobs that have ended. */
export function jobDeliveries(
  queries: PoolQueries,
): Pick<
  JobStore,
  | 'listDueDeliveries'
  | 'saveDelivery'
  | 'updateDelivery'
  | 'deleteEndedDeliveries'
  | 'listDeliveries'
  | 'findDelivery'
> {
  return {
    listDueDeliveries: async (now, limit, bytes) => {
      const due = await queries.rows(
        'select id, octet_length(body) as bytes from webhook_deliveries where next_at <= $1 order by next_at limit $2',
        [now, limit],
      );
      return due.length === 0
        ? []
        : (
            await queries.rows(
              'select * from webhook_deliveries where id = any ($1) and next_at <= $2 order by next_at',
              [idsWithinBytes(due, bytes), now],
            )
          ).map(deliveryFromRow);
    },

    saveDelivery: async (delivery) => {
      await queries.rows(SAVE_DELIVERY, deliveryValues(delivery));
    },

    updateDelivery: async (seen, next) => {
      const columns = DELIVERY_COLUMNS.map((column, index) => `${column} = $${index + 1}`).join(', ');
      const [id, endpointId, nextAt, attempts] = [1, 2, 3, 4].map(
        (offset) => `$${DELIVERY_COLUMNS.length + offset}`,
      );
      const changed = await queries.rows(
        `update webhook_deliveries set ${columns} where id = ${id} and endpoint_id = ${endpointId} and next_at is not distinct from ${nextAt} and attempts = ${attempts} returning id`,
        [...deliveryValues(next), seen.id, seen.endpointId, seen.nextAt, seen.attempts],
      );
      return changed.length > 0;
    },

    deleteEndedDeliveries: async (before) => {
      await queries.rows('delete from webhook_deliveries where next_at is null and updated_at < $1', [
        before,
      ]);
    },

    listDeliveries: async (endpointId, { jobId, limit }) =>
      (
        await queries.rows(
          `select ${DELIVERY_ENTRY_COLUMNS} from webhook_deliveries where endpoint_id = $1 and ($2::text is null or job_id = $2) order by created_at desc, id desc limit $3`,
          [endpointId, jobId ?? null, limit],
        )
      ).map(deliveryEntryFromRow),

    findDelivery: async (endpointId, id) => {
      const [row] = await queries.rows(
        'select * from webhook_deliveries where endpoint_id = $1 and id = $2',
        [endpointId, id],
      );
      return row === undefined ? undefined : deliveryFromRow(row);
    },
  };
}
