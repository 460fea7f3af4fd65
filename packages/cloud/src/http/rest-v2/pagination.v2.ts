import type { OwnedRecord, PageRequest } from '../../domain/records.ts';
import { schemaError } from '../../support/errors.ts';
import { boolean, integer, named, nullable, object, text } from '../rest/json-schema.ts';
import { MAX_PAGE_SIZE } from '../../domain/limits.ts';

export const pageQuery = {
  cursor: text({ minLength: 1, description: 'Where to go on: `pagination.nextCursor` of the page before' }),
  limit: integer({
    minimum: 1,
    maximum: MAX_PAGE_SIZE,
    default: MAX_PAGE_SIZE,
    description: 'How many to answer',
  }),
};

export const pagination = named(
  'Pagination',
  object({
    nextCursor: nullable(text({ description: 'Give this as `cursor` for the next page' })),
    hasNextPage: boolean(),
  }),
);

export interface PaginatedList<T> {
  items: T[];
  pagination: { nextCursor: string | null; hasNextPage: boolean };
}

/** Cuts one page out of a list. A cursor belongs to the operation that gave it. */
export async function paginate<T extends OwnedRecord>(
  operation: string,
  query: { cursor?: string; limit?: number },
  list: (page: PageRequest) => Promise<T[]>,
): Promise<PaginatedList<T>> {
  const limit = query.limit ?? MAX_PAGE_SIZE;
  const after = query.cursor === undefined ? undefined : readCursor(operation, query.cursor);
  const found = await list({ limit: limit + 1, ...(after !== undefined && { after }) });
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const hasNextPage = found.length > limit;
  return {
    items,
    pagination: {
      nextCursor: hasNextPage && last !== undefined ? writeCursor(operation, last) : null,
      hasNextPage,
    },
  };
}

function writeCursor(operation: string, { createdAt, id }: OwnedRecord): string {
  return Buffer.from(`${operation} ${createdAt} ${id}`).toString('base64url');
}

function readCursor(operation: string, cursor: string): { createdAt: number; id: string } {
  const [, from, createdAt, id] =
    /^(\S+) (\d{1,16}) (\S+)$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (from !== operation || createdAt === undefined || id === undefined || id.includes('\0')) {
    throw schemaError(['$.cursor: is not a cursor of this list; start again without one']);
  }
  return { createdAt: Number(createdAt), id };
}
