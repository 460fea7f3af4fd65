import type { Sealer } from '../../support/crypto.ts';
import { batchLookups } from '../../support/lookup-batches.ts';
import type { Database } from '../database.ts';
import type { Template } from '../../domain/records.ts';
import { assignments, execute, join, row, rows, rowValues, sql, tuples } from '../sql.ts';
import type { Row, Steps } from '../sql.ts';
import type { EndpointStore, EndpointReferences, EndpointReferenceIds } from '../store.ts';
import { recordAudit } from './audit-log.table.ts';
import { recordRelease } from './workers.table.ts';
import { createRelease } from '../release-changes.ts';
import { endpointRows } from './endpoint-rows.ts';
import { ownedTable, forShare, forUpdate } from './owned-table.ts';
import { lockRegistries } from './registries.table.ts';
import { templateRows, templateWriter, templateInUseReason } from './templates.table.ts';
import { volumeFromRow } from './network-volume-rows.ts';

export function endpointTable(database: Database, sealer: Sealer): EndpointStore {
  const { toRow, fromRow } = endpointRows(sealer);
  const templates = templateRows(sealer);
  const writeTemplate = templateWriter(sealer);
  const { find, list } = ownedTable(database, { table: 'endpoints', toRow, fromRow });

  /**
   * Always in this order, which is that of a registry that goes, so that two transactions never wait for each
   * other.
   */
  function* hold(
    accountId: string,
    { registryIds, templateId, changesTemplate, volumeIds = [] }: EndpointReferenceIds,
  ): Steps<EndpointReferences> {
    const heldRegistries = yield* lockRegistries(accountId, registryIds);
    const template =
      templateId === undefined
        ? undefined
        : yield* row<Row>(
            sql`select * from templates where id = ${templateId}
              and account_id = ${accountId}${changesTemplate === true ? forUpdate : forShare}`,
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
            sql`select * from network_volumes where account_id = ${accountId} and id in (${ids})
              order by id${forShare}`,
          );
    return {
      registryIds: heldRegistries,
      template: template && templates.fromRow(template),
      volumes: volumes.map(volumeFromRow),
    };
  }

  function* insertTemplate(template: Template | undefined): Steps<void> {
    if (template !== undefined)
      yield* execute(sql`insert into templates ${rowValues(templates.toRow(template))}`);
  }

  /** Unless others use it by now: then it stays, as a template like any other. */
  function* removeOwnTemplate(accountId: string, id: string): Steps<void> {
    // Locked before the check: what was being created with it is committed by then.
    yield* row<Row>(sql`select id from templates where id = ${id} and account_id = ${accountId}${forUpdate}`);
    if ((yield* templateInUseReason(accountId, id)) === undefined)
      yield* execute(sql`delete from templates where id = ${id} and account_id = ${accountId}`);
  }

  return {
    find,
    list,

    // Each poll of a worker asks for its endpoint, which is cached for less time than there is between two polls.
    findInAnyAccount: batchLookups((ids) =>
      database.read(function* () {
        const found = yield* rows<Row>(sql`select * from endpoints where id in ${tuples([ids])}`);
        return new Map(found.map(fromRow).map((endpoint) => [endpoint.id, endpoint]));
      }),
    ),

    listLocalImages: () =>
      database.read(function* () {
        const found = yield* rows<{ image: string; account_id: string }>(
          sql`select distinct image, account_id from endpoints where image like 'local/%'`,
        );
        return found.map(({ image, account_id }) => ({ image, accountId: account_id }));
      }),

    insert: (accountId, ids, make) =>
      database.write(function* () {
        const { record, template, audit } = make(yield* hold(accountId, ids));
        yield* insertTemplate(template);
        yield* execute(sql`insert into endpoints ${rowValues(toRow(record))}`);
        yield* recordRelease(createRelease(undefined, record), sealer);
        yield* recordAudit(audit);
        return record;
      }),

    change: (accountId, id, ids, next) =>
      database.write(function* () {
        const references = yield* hold(accountId, ids);
        const found = yield* row<Row>(
          sql`select * from endpoints where id = ${id} and account_id = ${accountId}${forUpdate}`,
        );
        if (found === undefined) return undefined;
        const current = fromRow(found);
        const { record, template, changedTemplate, audit } = next(current, references);
        yield* insertTemplate(template);
        if (changedTemplate !== undefined) yield* writeTemplate(changedTemplate);
        yield* execute(sql`update endpoints set ${assignments(toRow(record))} where id = ${id}`);
        if (record.version !== current.version) yield* recordRelease(createRelease(current, record), sealer);
        if (current.templateBound && current.templateId !== null && current.templateId !== record.templateId)
          yield* removeOwnTemplate(accountId, current.templateId);
        yield* recordAudit(audit);
        return record;
      }),

    remove: (accountId, id, audit) =>
      database.write(function* () {
        const found = yield* row<Row>(
          sql`select * from endpoints where id = ${id} and account_id = ${accountId}${forUpdate}`,
        );
        if (found === undefined) return false;
        yield* execute(sql`delete from endpoints where id = ${id}`);
        yield* execute(sql`delete from releases where endpoint_id = ${id}`);
        const { templateBound, templateId } = fromRow(found);
        if (templateBound && templateId !== null) yield* removeOwnTemplate(accountId, templateId);
        yield* recordAudit(audit);
        return true;
      }),
  };
}
