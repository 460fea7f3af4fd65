import type { JobStore } from '../job-store.ts';
import {
  DELIVERY_COLUMNS,
  DELIVERY_ENTRY_COLUMNS,
  deliveryEntryFromRow,
  deliveryFromRow,
  deliveryValues,
  idsWithinBytes,
} from '../tables/webhook-deliveries.table.ts';
import type { QueueContext } from './queue-context.ts';

const assign = (value: (column: string) => string): string =>
  DELIVERY_COLUMNS.map((column) => `${column} = ${value(column)}`).join(', ');

export const SAVE_DELIVERY = `insert into webhook_deliveries (${DELIVERY_COLUMNS.join(', ')})
  values (${DELIVERY_COLUMNS.map((column) => `:${column}`).join(', ')})
  on conflict (id) do update set ${assign((column) => `excluded.${column}`)}`;

/** The webhooks of jobs that have ended. */
export function jobDeliveries({
  statements,
}: QueueContext): Pick<
  JobStore,
  | 'listDueDeliveries'
  | 'saveDelivery'
  | 'updateDelivery'
  | 'deleteEndedDeliveries'
  | 'listDeliveries'
  | 'findDelivery'
> {
  const save = statements.rows(SAVE_DELIVERY);
  const selectDue = statements.rows(
    'select id, octet_length(body) as bytes from webhook_deliveries where next_at <= :now order by ' +
      'next_at limit :limit',
  );
  const selectSeveral = statements.rows(
    'select * from webhook_deliveries where id = any (:ids) and next_at <= :now order by next_at',
  );
  /** Only if it is still as it was seen: another attempt may have been made since. */
  const update = statements.rows(
    `update webhook_deliveries set ${assign((column) => `:${column}`)}
      where id = :seen_id and endpoint_id = :seen_endpoint_id
        and next_at is not distinct from :seen_next_at and attempts = :seen_attempts returning id`,
  );
  const deleteEnded = statements.rows(
    'delete from webhook_deliveries where next_at is null and updated_at < :before',
  );
  const selectEntries = statements.rows(
    `select ${DELIVERY_ENTRY_COLUMNS} from webhook_deliveries
      where endpoint_id = :endpoint_id and (:job_id::text is null or job_id = :job_id)
      order by created_at desc, id desc limit :limit`,
  );
  const selectOne = statements.rows(
    'select * from webhook_deliveries where endpoint_id = :endpoint_id and id = :id',
  );

  return {
    listDueDeliveries: async (now, limit, bytes) => {
      const due = await selectDue({ now, limit });
      if (due.length === 0) return [];
      return (await selectSeveral({ ids: idsWithinBytes(due, bytes), now })).map(deliveryFromRow);
    },

    saveDelivery: async (delivery) => void (await save(deliveryValues(delivery))),

    updateDelivery: async (seen, next) => {
      const updated = await update({
        ...deliveryValues(next),
        seen_id: seen.id,
        seen_endpoint_id: seen.endpointId,
        seen_next_at: seen.nextAt,
        seen_attempts: seen.attempts,
      });
      return updated.length > 0;
    },

    deleteEndedDeliveries: async (before) => void (await deleteEnded({ before })),

    listDeliveries: async (endpoint_id, { jobId, limit }) =>
      (await selectEntries({ endpoint_id, job_id: jobId ?? null, limit })).map(deliveryEntryFromRow),

    findDelivery: async (endpoint_id, id) => {
      const [row] = await selectOne({ endpoint_id, id });
      return row === undefined ? undefined : deliveryFromRow(row);
    },
  };
}
