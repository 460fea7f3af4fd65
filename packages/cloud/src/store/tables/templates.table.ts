import type { Sealer } from '../../support/crypto.ts';
import { BerthError } from '../../support/errors.ts';
import type { Database } from '../database.ts';
import type { Template, TemplateCategory } from '../../domain/records.ts';
import { assignments, execute, row, rows, rowValues, sql } from '../sql.ts';
import type { Row, Steps } from '../sql.ts';
import type { AuditedTemplateChange, TemplateStore } from '../store.ts';
import { createRelease } from '../release-changes.ts';
import { recordAudit } from './audit-log.table.ts';
import { recordRelease } from './workers.table.ts';
import { endpointRows } from './endpoint-rows.ts';
import { ownedTable, toFlag, forUpdate } from './owned-table.ts';
import { lockRegistries } from './registries.table.ts';

interface TemplateRow {
  id: string;
  account_id: string;
  name: string;
  image: string;
  args: string;
  container_disk: number;
  volume_size: number;
  volume_path: string;
  ports: string;
  port_labels: string;
  sealed_env: string;
  registry_id: string | null;
  category: string;
  public: number;
  serverless: number;
  readme: string;
  start_ssh: number;
  start_jupyter: number;
  start_script: string;
  advanced_start: number;
  allowed_cuda_versions: string;
  config: string;
  created_at: number;
  updated_at: number;
}

/** How a template is stored in its table. */
export interface TemplateRows {
  toRow(template: Template): Row & TemplateRow;
  fromRow(found: Row): Template;
}

export function templateRows(sealer: Sealer): TemplateRows {
  const toRow = (template: Template): Row & TemplateRow => ({
    id: template.id,
    account_id: template.accountId,
    name: template.name,
    image: template.image,
    args: template.args,
    container_disk: template.containerDisk,
    volume_size: template.volumeSize,
    volume_path: template.volumePath,
    ports: JSON.stringify(template.ports),
    port_labels: JSON.stringify(template.portLabels),
    sealed_env: sealer.seal(JSON.stringify(template.env), `template ${template.id}`),
    registry_id: template.registryId,
    category: template.category,
    public: toFlag(template.public),
    serverless: toFlag(template.serverless),
    readme: template.readme,
    start_ssh: toFlag(template.startSsh),
    start_jupyter: toFlag(template.startJupyter),
    start_script: template.startScript,
    advanced_start: toFlag(template.advancedStart),
    allowed_cuda_versions: JSON.stringify(template.allowedCudaVersions),
    config: JSON.stringify(template.config ?? null),
    created_at: template.createdAt,
    updated_at: template.updatedAt,
  });

  const fromRow = (found: Row): Template => {
    const template = found as unknown as TemplateRow;
    return {
      id: template.id,
      accountId: template.account_id,
      name: template.name,
      image: template.image,
      args: template.args,
      containerDisk: template.container_disk,
      volumeSize: template.volume_size,
      volumePath: template.volume_path,
      ports: JSON.parse(template.ports) as string[],
      portLabels: JSON.parse(template.port_labels) as Template['portLabels'],
      env: JSON.parse(sealer.open(template.sealed_env, `template ${template.id}`)) as Record<string, string>,
      registryId: template.registry_id,
      category: template.category as TemplateCategory,
      public: template.public === 1,
      serverless: template.serverless === 1,
      readme: template.readme,
      startSsh: template.start_ssh === 1,
      startJupyter: template.start_jupyter === 1,
      startScript: template.start_script,
      advancedStart: template.advanced_start === 1,
      allowedCudaVersions: JSON.parse(template.allowed_cuda_versions) as string[],
      config: JSON.parse(template.config) as unknown,
      createdAt: template.created_at,
      updatedAt: template.updated_at,
    };
  };

  return { toRow, fromRow };
}

/** Writes a template that is locked, and what becomes of the endpoints that follow it. */
export function templateWriter(sealer: Sealer): (changed: AuditedTemplateChange) => Steps<void> {
  const { toRow } = templateRows(sealer);
  const endpoints = endpointRows(sealer);
  return function* ({ record, audit, updateLinked }) {
    yield* execute(sql`update templates set ${assignments(toRow(record))} where id = ${record.id}`);
    yield* recordAudit(audit);
    const linked =
      updateLinked === undefined
        ? []
        : yield* rows<Row>(
            sql`select * from endpoints where account_id = ${record.accountId}
              and template_id = ${record.id} and template_linked = 1 order by id${forUpdate}`,
          );
    for (const endpoint of linked.map(endpoints.fromRow)) {
      const changed = updateLinked?.(endpoint);
      if (changed === undefined) continue;
      yield* execute(
        sql`update endpoints set ${assignments(endpoints.toRow(changed.record))} where id = ${endpoint.id}`,
      );
      if (changed.record.version !== endpoint.version)
        yield* recordRelease(createRelease(endpoint, changed.record), sealer);
      yield* recordAudit(changed.audit);
    }
  };
}

/** Who still uses a template, and what to do about it. */
export function* templateInUseReason(accountId: string, id: string): Steps<string | undefined> {
  const endpoint = yield* row<{ id: string; name: string }>(
    sql`select id, name from endpoints where account_id = ${accountId} and template_id = ${id}
      and template_linked = 1 limit 1`,
  );
  if (endpoint !== undefined)
    return (
      `endpoint ${JSON.stringify(endpoint.name)} (${endpoint.id}) uses this template; give it ` +
      'another one, or delete the endpoint first'
    );
  // Of a public one, also pods of other accounts are made. One's own is named first: something can be done
  // about it.
  const pod = yield* row<{ id: string; name: string; account_id: string }>(
    sql`select id, name, account_id from pods where template_id = ${id} and wanted <> 'terminated'
      order by case when account_id = ${accountId} then 0 else 1 end limit 1`,
  );
  if (pod === undefined) return undefined;
  if (pod.account_id === accountId)
    return `pod ${JSON.stringify(pod.name)} (${pod.id}) was made from this template; terminate the pod first`;
  return 'a pod of another account was made from this template; it can be deleted when that pod is terminated';
}

export function templateTable(database: Database, sealer: Sealer): TemplateStore {
  const { toRow, fromRow } = templateRows(sealer);
  const write = templateWriter(sealer);

  return {
    ...ownedTable(database, {
      table: 'templates',
      toRow,
      fromRow,
      // Checked after the delete: an endpoint that was being created with it is committed by then.
      *onRemove(accountId, id) {
        const user = yield* templateInUseReason(accountId, id);
        if (user !== undefined) throw new BerthError('in-use', user);
      },
    }),

    insert: (accountId, ids, make) =>
      database.write(function* () {
        const { record, audit } = make({ registryIds: yield* lockRegistries(accountId, ids.registryIds) });
        yield* execute(sql`insert into templates ${rowValues(toRow(record))}`);
        yield* recordAudit(audit);
        return record;
      }),

    change: (accountId, id, ids, next) =>
      database.write(function* () {
        // Before the template, as a registry that goes does: two transactions never wait for each other.
        const registryIds = yield* lockRegistries(accountId, ids.registryIds);
        const found = yield* row<Row>(
          sql`select * from templates where id = ${id} and account_id = ${accountId}${forUpdate}`,
        );
        if (found === undefined) return undefined;
        const changed = next(fromRow(found), { registryIds });
        yield* write(changed);
        return changed.record;
      }),

    findByName: (accountId, name) =>
      database.read(function* () {
        const found = yield* row<Row>(
          sql`select * from templates where account_id = ${accountId} and name = ${name}`,
        );
        return found === undefined ? undefined : fromRow(found);
      }),

    findPublic: (id) =>
      database.read(function* () {
        const found = yield* row<Row>(sql`select * from templates where id = ${id} and public = 1`);
        return found === undefined ? undefined : fromRow(found);
      }),

    listPublic: (limit) =>
      database.read(function* () {
        const found = yield* rows<Row>(
          sql`select * from templates where public = 1 order by created_at desc, id desc limit ${limit}`,
        );
        return found.map(fromRow);
      }),
  };
}
