import type { JobStore } from '../job-store.ts';
import {
  DELIVERY_COLUMNS,
  DELIVERY_ENTRY_COLUMNS,
  deliveryEntryFromRow,
  deliveryFromRow,
  deliveryValues,
  idsWithinBytes,
} from '../tables/webhook-deliveries.table.ts';
import { deleteInBatches } from './delete-in-batches.ts';
import type { QueueContext } from './queue-context.ts';
import { assignments, columnsAndValues } from './statements.ts';

export const SAVE_DELIVERY = `insert or replace into webhook_deliveries ${columnsAndValues(DELIVERY_COLUMNS)}`;

/** The webhooks of jobs that have ended. */
export function jobDeliveries({
  statements,
  group,
}: QueueContext): Pick<
  JobStore,
  | 'listDueDeliveries'
  | 'saveDelivery'
  | 'updateDelivery'
  | 'deleteEndedDeliveries'
  | 'listDeliveries'
  | 'findDelivery'
> {
  const save = statements.write(SAVE_DELIVERY);
  const selectDue = statements.rows(
    'select id, octet_length(body) as bytes from webhook_deliveries where next_at <= :now order by ' +
      'next_at limit :limit',
  );
  const selectById = statements.rows('select * from webhook_deliveries where id = :id');
  /** Only if it is still as it was seen: another attempt may have been made since. */
  const update = statements.write(
    `update webhook_deliveries set ${assignments(DELIVERY_COLUMNS)} where id = :seen_id
      and endpoint_id = :seen_endpoint_id and next_at is :seen_next_at and attempts = :seen_attempts`,
  );
  const deleteEnded = statements.write(
    `delete from webhook_deliveries where rowid in
      (select rowid from webhook_deliveries where next_at is null and updated_at < :before limit :limit)`,
  );
  const selectEntries = statements.rows(
    `select ${DELIVERY_ENTRY_COLUMNS} from webhook_deliveries where endpoint_id = :endpoint_id
      order by created_at desc, id desc limit :limit`,
  );
  const selectEntriesOfJob = statements.rows(
    `select ${DELIVERY_ENTRY_COLUMNS} from webhook_deliveries where endpoint_id = :endpoint_id and job_id = :job_id
      order by created_at desc, id desc limit :limit`,
  );
  const selectOne = statements.rows(
    'select * from webhook_deliveries where endpoint_id = :endpoint_id and id = :id',
  );

  return {
    listDueDeliveries: (now, limit, bytes) =>
      group.read(() =>
        idsWithinBytes(selectDue.all({ now, limit }), bytes).flatMap((id) =>
          selectById.all({ id }).map(deliveryFromRow),
        ),
      ),

    saveDelivery: (delivery) => group.run(() => void save(deliveryValues(delivery))),

    updateDelivery: (seen, next) =>
      group.run(
        () =>
          update({
            ...deliveryValues(next),
            seen_id: seen.id,
            seen_endpoint_id: seen.endpointId,
            seen_next_at: seen.nextAt,
            seen_attempts: seen.attempts,
          }) > 0,
      ),

    deleteEndedDeliveries: (before) =>
      deleteInBatches((limit) => group.run(() => deleteEnded({ before, limit }))).then(() => undefined),

    listDeliveries: (endpoint_id, { jobId, limit }) =>
      group.read(() =>
        (jobId === undefined
          ? selectEntries.all({ endpoint_id, limit })
          : selectEntriesOfJob.all({ endpoint_id, job_id: jobId, limit })
        ).map(deliveryEntryFromRow),
      ),

    findDelivery: (endpoint_id, id) =>
      group.read(() => {
        const row = selectOne.get({ endpoint_id, id });
        return row === undefined ? undefined : deliveryFromRow(row);
      }),
  };
}
