import type { Delivery } from '../../domain/job-records.ts';
import {
  DELIVERY_COLUMNS,
  deliveryFromRow,
  deliveryValues,
  DELIVERY_ENTRY_COLUMNS,
  deliveryEntryFromRow,
  idsWithinBytes,
} from '../tables/job-rows.ts';
import type { JobStore } from '../job-store.ts';
import type { Row } from '../sql.ts';
import type { GroupCommit } from './group-commit.ts';
import { deleteInBatches } from './delete-in-batches.ts';
import { assignPlaceholders, placeholders } from './statements.ts';
import type { Statements } from './statements.ts';

export const SAVE_DELIVERY = `insert or replace into webhook_deliveries (${DELIVERY_COLUMNS.join(', ')}) values (${placeholders(DELIVERY_COLUMNS.length)})`;

/** The webhooks of jobs that have ended. */
export function jobDeliveries(
  statements: Statements,
  group: GroupCommit,
): Pick<
  JobStore,
  | 'listDueDeliveries'
  | 'saveDelivery'
  | 'updateDelivery'
  | 'deleteEndedDeliveries'
  | 'listDeliveries'
  | 'findDelivery'
> {
  const save = statements.write(SAVE_DELIVERY);

  return {
    listDueDeliveries: (now, limit, bytes) =>
      group.read(() => {
        const due = statements
          .select(
            'select id, octet_length(body) as bytes from webhook_deliveries where next_at <= ? order by next_at limit ?',
          )
          .all(now, limit) as Row[];
        return idsWithinBytes(due, bytes).map((id) =>
          deliveryFromRow(statements.select('select * from webhook_deliveries where id = ?').get(id) as Row),
        );
      }),

    saveDelivery: (delivery: Delivery) =>
      group.run(() => {
        save().run(...deliveryValues(delivery));
      }),

    updateDelivery: (seen, next) =>
      group.run(() => {
        const columns = assignPlaceholders(DELIVERY_COLUMNS);
        const changed = statements
          .write(
            `update webhook_deliveries set ${columns} where id = ? and endpoint_id = ? and next_at is ? and attempts = ?`,
          )()
          .run(...deliveryValues(next), seen.id, seen.endpointId, seen.nextAt, seen.attempts);
        return changed.changes > 0;
      }),

    deleteEndedDeliveries: (before) =>
      deleteInBatches((most) =>
        group.run(() =>
          Number(
            statements
              .write(
                'delete from webhook_deliveries where rowid in (select rowid from webhook_deliveries where next_at is null and updated_at < ? limit ?)',
              )()
              .run(before, most).changes,
          ),
        ),
      ).then(() => undefined),

    listDeliveries: (endpointId, { jobId, limit }) =>
      group.read(() => {
        const only = jobId === undefined ? '' : 'and job_id = ?';
        const rows = statements
          .select(
            `select ${DELIVERY_ENTRY_COLUMNS} from webhook_deliveries where endpoint_id = ? ${only} order by created_at desc, id desc limit ?`,
          )
          .all(...[endpointId, ...(jobId === undefined ? [] : [jobId]), limit]) as Row[];
        return rows.map(deliveryEntryFromRow);
      }),

    findDelivery: (endpointId, id) =>
      group.read(() => {
        const row = statements
          .select('select * from webhook_deliveries where endpoint_id = ? and id = ?')
          .get(endpointId, id) as Row | undefined;
        return row === undefined ? undefined : deliveryFromRow(row);
      }),
  };
}
