import type { Delivery } from '../job-records.ts';
import {
  DELIVERY_COLUMNS,
  deliveryFromRow,
  deliveryValues,
  ENTRY_COLUMNS,
  entryFromRow,
  thatFit,
} from '../job-rows.ts';
import type { JobStore } from '../jobs.ts';
import type { Row } from '../sql.ts';
import type { GroupCommit } from './group-commit.ts';
import { inPieces } from './in-pieces.ts';
import { assign, marks } from './statements.ts';
import type { Statements } from './statements.ts';

export const SAVE_DELIVERY = `insert or replace into webhook_deliveries (${DELIVERY_COLUMNS.join(', ')}) values (${marks(DELIVERY_COLUMNS.length)})`;

/** The webhooks of jobs that have ended. */
export function deliveries(
  statements: Statements,
  group: GroupCommit,
): Pick<
  JobStore,
  'dueDeliveries' | 'saveDelivery' | 'changeDelivery' | 'forgetDeliveries' | 'deliveries' | 'findDelivery'
> {
  const save = statements.writing(SAVE_DELIVERY);

  return {
    dueDeliveries: (now, limit, bytes) =>
      group.read(() => {
        const due = statements
          .select(
            'select id, octet_length(body) as bytes from webhook_deliveries where next_at <= ? order by next_at limit ?',
          )
          .all(now, limit) as Row[];
        return thatFit(due, bytes).map((id) =>
          deliveryFromRow(statements.select('select * from webhook_deliveries where id = ?').get(id) as Row),
        );
      }),

    saveDelivery: (delivery: Delivery) =>
      group.run(() => {
        save().run(...deliveryValues(delivery));
      }),

    changeDelivery: (seen, next) =>
      group.run(() => {
        const columns = assign(DELIVERY_COLUMNS);
        const changed = statements
          .writing(
            `update webhook_deliveries set ${columns} where id = ? and endpoint_id = ? and next_at is ? and attempts = ?`,
          )()
          .run(...deliveryValues(next), seen.id, seen.endpointId, seen.nextAt, seen.attempts);
        return changed.changes > 0;
      }),

    forgetDeliveries: (before) =>
      inPieces((most) =>
        group.run(() =>
          Number(
            statements
              .writing(
                'delete from webhook_deliveries where rowid in (select rowid from webhook_deliveries where next_at is null and updated_at < ? limit ?)',
              )()
              .run(before, most).changes,
          ),
        ),
      ).then(() => undefined),

    deliveries: (endpointId, { jobId, limit }) =>
      group.read(() => {
        const only = jobId === undefined ? '' : 'and job_id = ?';
        const rows = statements
          .select(
            `select ${ENTRY_COLUMNS} from webhook_deliveries where endpoint_id = ? ${only} order by created_at desc, id desc limit ?`,
          )
          .all(...[endpointId, ...(jobId === undefined ? [] : [jobId]), limit]) as Row[];
        return rows.map(entryFromRow);
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
