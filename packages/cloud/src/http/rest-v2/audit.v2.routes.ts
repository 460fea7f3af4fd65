import type { Caller } from '../../domain/caller.ts';
import type { AuditEntry } from '../../domain/records.ts';
import { MAX_PAGE_SIZE } from '../../domain/limits.ts';
import type { AllServices } from '../../resources/resources.ts';
import { isoTime } from '../../support/clock.ts';
import { schemaError } from '../../support/errors.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { anyValue, integer, list, named, nullable, object, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { dateTime } from './common.v2.schema.ts';
import { pagination } from './pagination.v2.ts';

const DEFAULT_PAGE_SIZE = 100;
/** In place of the id of a key. */
const SYSTEM_ACTOR = 'system';

const change = object({ field: text() }, { from: anyValue(), to: anyValue() });
const entryFields = {
  id: integer(),
  at: dateTime('When'),
  action: text({ examples: ['create'] }),
  resource: text({ examples: ['template'] }),
  resourceId: text(),
  keyId: nullable(text({ description: 'The key that did it; null where Berth itself acted' })),
  interface: text({ examples: ['rest-v2'] }),
  requestId: text(),
  changes: list(change, { description: 'What changed; a hidden value is named without being shown' }),
};
const auditEntry = named('AuditEntry', object(entryFields));
const foundEntry = named(
  'FoundAuditEntry',
  object({
    ...entryFields,
    accountId: text({ description: 'The account that owns the resource' }),
    keyName: nullable(text({ description: 'The name of the key; null where it is deleted' })),
  }),
);

const limit = integer({
  minimum: 1,
  maximum: MAX_PAGE_SIZE,
  default: DEFAULT_PAGE_SIZE,
  description: 'How many to answer',
});
const searchQuery = object(
  {},
  {
    actor: text({
      minLength: 1,
      description: `Changes by the key of this id; "${SYSTEM_ACTOR}" is Berth itself`,
    }),
    action: text({ minLength: 1, examples: ['create'] }),
    resource: text({ minLength: 1, description: 'The kind of resource', examples: ['pod'] }),
    resourceId: text({ minLength: 1, description: 'Changes of this one alone' }),
    from: dateTime('Inclusive'),
    to: dateTime('Exclusive'),
    account: text({ minLength: 1, description: 'For operators: the id of an account, or "all"' }),
    cursor: text({
      pattern: '^[1-9][0-9]{0,15}$',
      description: '`pagination.nextCursor` of the page before',
    }),
    limit,
  },
);

/** The audit log: who changed what, and when. */
export function auditOperations({ accounts }: Pick<AllServices, 'accounts'>): Operation[] {
  const tag = 'Account';
  return [
    operation({
      id: 'listAuditLog',
      method: 'GET',
      path: '/account/audit-log',
      tag,
      summary: 'Who changed what, newest first',
      access: 'read',
      query: object(
        {},
        {
          limit,
          before: integer({
            minimum: 1,
            maximum: Number.MAX_SAFE_INTEGER,
            description: 'Only entries with a smaller id: the last id of the page before',
          }),
        },
      ),
      status: 200,
      response: named('AuditLog', object({ entries: list(auditEntry) })),
      errorStatuses: [422],
      handle: async ({ caller, query: { limit: count = DEFAULT_PAGE_SIZE, before } }) => {
        const entries = await accounts.audit(caller, {
          limit: count,
          ...(before !== undefined && { before }),
        });
        return { entries: entries.map(({ accountId: _, ...entry }) => serializeEntry(entry)) };
      },
    }),
    operation({
      id: 'searchAuditLog',
      method: 'GET',
      path: '/audit',
      tag,
      summary: 'Search the audit log by actor, action, resource and time, newest first',
      description:
        'A page may have fewer entries than asked for, even none, and still a next one: each page ' +
        'reads a bounded part of the log.',
      access: 'read',
      query: searchQuery,
      status: 200,
      response: named('AuditSearch', object({ entries: list(foundEntry), pagination })),
      errorStatuses: [422],
      handle: ({ caller, query }) => search(accounts, caller, query),
    }),
  ];
}

async function search(
  accounts: AllServices['accounts'],
  caller: Caller,
  query: Static<typeof searchQuery>,
): Promise<{
  entries: Static<typeof foundEntry>[];
  pagination: { nextCursor: string | null; hasNextPage: boolean };
}> {
  const { actor, account, from, to, cursor, limit: count = DEFAULT_PAGE_SIZE, ...exact } = query;
  const { entries, before } = await accounts.searchAudit(
    caller,
    {
      ...exact,
      ...(account !== undefined && { accountId: account }),
      ...(actor !== undefined && { keyId: actor === SYSTEM_ACTOR ? null : actor }),
      ...(from !== undefined && { from: readInstant('from', from) }),
      ...(to !== undefined && { to: readInstant('to', to) }),
    },
    { limit: count, ...(cursor !== undefined && { before: Number(cursor) }) },
  );
  return {
    entries: entries.map(serializeEntry),
    pagination: {
      nextCursor: before === undefined ? null : String(before),
      hasNextPage: before !== undefined,
    },
  };
}

function serializeEntry<T extends Pick<AuditEntry, 'at'>>(entry: T): Omit<T, 'at'> & { at: string } {
  return { ...entry, at: isoTime(entry.at) };
}

function readInstant(name: string, value: string): number {
  const at = Date.parse(value);
  if (Number.isNaN(at)) throw schemaError([`$.${name}: must be an instant such as 2026-01-31T00:00:00Z`]);
  return at;
}
