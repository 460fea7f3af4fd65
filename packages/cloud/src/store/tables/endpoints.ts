import type { Sealer } from '../../support/crypto.ts';
import type { Database } from '../database.ts';
import type { Template } from '../records.ts';
import { assignments, changes, join, row, rows, rowValues, sql } from '../sql.ts';
import type { Row, Steps } from '../sql.ts';
import type { EndpointStore, Footing, FootingIds } from '../store.ts';
import { recordAudit } from './audit.ts';
import { recordRelease } from './fleet.ts';
import { releaseOf } from '../releases.ts';
import { endpointRows } from './endpoint-rows.ts';
import { collection, holdRow, lockRow } from './owned-table.ts';
import { holdRegistries } from './registries.ts';
import { templateRows, templateWriting, userOfTemplate } from './templates.ts';
import { volumeFromRow } from './volumes.ts';

export function endpointTable(database: Database, sealer: Sealer): EndpointStore {
  const { toRow, fromRow } = endpointRows(sealer);
  const templates = templateRows(sealer);
  const writeTemplate = templateWriting(sealer);
  const { find, list } = collection(database, { table: 'endpoints', toRow, fromRow });

  /** Always in this order, which is that of a registry that goes, so that two transactions never wait for each other. */
  function* hold(
    accountId: string,
    { registryIds, templateId, changesTemplate, volumeIds = [] }: FootingIds,
  ): Steps<Footing> {
    const heldRegistries = yield* holdRegistries(accountId, registryIds);
    const template =
      templateId === undefined
        ? undefined
        : yield* row<Row>(
            sql`select * from templates where id = ${templateId} and account_id = ${accountId}${changesTemplate === true ? lockRow : holdRow}`,
          );
    const ids =
      volumeIds.length === 0
        ? undefined
        : join(
            volumeIds.map((id) => sql`${id}`),
            ', ',
          );
    const volumes =
      ids === undefined
        ? []
        : yield* rows<Row>(
            sql`select * from network_volumes where account_id = ${accountId} and id in (${ids}) order by id${holdRow}`,
          );
    return {
      registryIds: heldRegistries,
      template: template && templates.fromRow(template),
      volumes: volumes.map(volumeFromRow),
    };
  }

  function* insertTemplate(template: Template | undefined): Steps<void> {
    if (template !== undefined)
      yield* changes(sql`insert into templates ${rowValues(templates.toRow(template))}`);
  }

  /** Unless others use it by now: then it stays, as a template like any other. */
  function* removeOwnTemplate(accountId: string, id: string): Steps<void> {
    // Locked before it is asked: whoever held it for something has written that by then.
    yield* row<Row>(sql`select id from templates where id = ${id} and account_id = ${accountId}${lockRow}`);
    if ((yield* userOfTemplate(accountId, id)) === undefined)
      yield* changes(sql`delete from templates where id = ${id} and account_id = ${accountId}`);
  }

  return {
    find,
    list,

    findAnywhere: (id) =>
      database.read(function* () {
        const found = yield* row<Row>(sql`select * from endpoints where id = ${id}`);
        return found === undefined ? undefined : fromRow(found);
      }),

    insert: (accountId, ids, make) =>
      database.write(function* () {
        const { record, template, audit } = make(yield* hold(accountId, ids));
        yield* insertTemplate(template);
        yield* changes(sql`insert into endpoints ${rowValues(toRow(record))}`);
        yield* recordRelease(releaseOf(undefined, record), sealer);
        yield* recordAudit(audit);
        return record;
      }),

    change: (accountId, id, ids, next) =>
      database.write(function* () {
        const footing = yield* hold(accountId, ids);
        const found = yield* row<Row>(
          sql`select * from endpoints where id = ${id} and account_id = ${accountId}${lockRow}`,
        );
        if (found === undefined) return undefined;
        const current = fromRow(found);
        const { record, template, changedTemplate, audit } = next(current, footing);
        yield* insertTemplate(template);
        if (changedTemplate !== undefined) yield* writeTemplate(changedTemplate);
        yield* changes(sql`update endpoints set ${assignments(toRow(record))} where id = ${id}`);
        if (record.version !== current.version) yield* recordRelease(releaseOf(current, record), sealer);
        if (current.templateBound && current.templateId !== null && current.templateId !== record.templateId)
          yield* removeOwnTemplate(accountId, current.templateId);
        yield* recordAudit(audit);
        return record;
      }),

    remove: (accountId, id, audit) =>
      database.write(function* () {
        const found = yield* row<Row>(
          sql`select * from endpoints where id = ${id} and account_id = ${accountId}${lockRow}`,
        );
        if (found === undefined) return false;
        yield* changes(sql`delete from endpoints where id = ${id}`);
        const { templateBound, templateId } = fromRow(found);
        if (templateBound && templateId !== null) yield* removeOwnTemplate(accountId, templateId);
        yield* recordAudit(audit);
        return true;
      }),
  };
}
