import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { auditEntry } from '../../resources/resource-context.ts';
import type { NetworkVolume, OwnedRecord } from '../../domain/records.ts';
import { BerthError } from '../../support/errors.ts';
import type { PaginatedList } from './pagination.v2.ts';
import { paginate } from './pagination.v2.ts';

describe('pages of a list', () => {
  let context: ServiceContext;
  before(async () => {
    context = await createServiceContext();
  });
  after(() => context.close());

  const insert = async (accountId: string, id: string, createdAt: number): Promise<void> => {
    const volume: NetworkVolume = {
      id,
      accountId,
      name: id,
      size: 1,
      dataCenterId: 'LOCAL-1',
      type: 'STANDARD',
      createdAt,
    };
    await context.store.volumes.insert(
      volume,
      auditEntry(context, context.root, 'create', 'network volume', id),
    );
  };
  const page = (
    accountId: string,
    query: { cursor?: string; limit?: number },
  ): Promise<PaginatedList<NetworkVolume>> =>
    paginate('volumes', query, (slice) => context.store.volumes.list(accountId, slice));

  test('together are the list: nothing twice, nothing left out, whatever the times and the limit', async () => {
    await checkProperty(
      fc.asyncProperty(
        fc.array(fc.nat(5), { maxLength: 12 }),
        fc.integer({ min: 1, max: 5 }),
        async (times, limit) => {
          const { accountId } = await context.account(context.ids.resource());
          for (const createdAt of times) await insert(accountId, context.ids.resource(), createdAt);
          const all = (await context.store.volumes.list(accountId)).map(({ id }) => id);
          const seen: string[] = [];
          for (let query: { cursor?: string } = {}; ; ) {
            const { items, pagination } = await page(accountId, { ...query, limit });
            assert.ok(items.length <= limit);
            assert.equal(pagination.hasNextPage, pagination.nextCursor !== null);
            seen.push(...items.map(({ id }) => id));
            if (pagination.nextCursor === null) break;
            assert.equal(items.length, limit);
            query = { cursor: pagination.nextCursor };
          }
          assert.deepEqual(seen, all);
        },
      ),
      40,
    );
  });

  test('stay the pages that they were while others are added and removed', async () => {
    await checkProperty(
      fc.asyncProperty(
        fc.array(fc.nat(4), { minLength: 2, maxLength: 12 }),
        fc.array(fc.constantFrom('insert', 'remove'), { maxLength: 12 }),
        async (times, changes) => {
          const { accountId } = await context.account(context.ids.resource());
          for (const createdAt of times) await insert(accountId, context.ids.resource(), createdAt);
          const expected = new Set((await context.store.volumes.list(accountId)).map(({ id }) => id));
          const seen: string[] = [];
          let cursor: string | undefined;
          do {
            const { items, pagination } = await page(accountId, {
              limit: 2,
              ...(cursor !== undefined && { cursor }),
            });
            seen.push(...items.map(({ id }) => id));
            cursor = pagination.nextCursor ?? undefined;
            const change = changes.pop();
            if (change === 'insert') await insert(accountId, context.ids.resource(), 100 + changes.length);
            const removed = items.at(-1)?.id;
            if (change === 'remove' && removed !== undefined)
              await context.store.volumes.remove(
                accountId,
                removed,
                auditEntry(context, context.root, 'delete', 'network volume', removed),
              );
          } while (cursor !== undefined);
          assert.deepEqual(new Set(seen), expected);
          assert.equal(seen.length, expected.size);
        },
      ),
      40,
    );
  });

  test('are found by their cursors alone: anything else is refused', async () => {
    const list = async (): Promise<OwnedRecord[]> =>
      ['b', 'a'].map((id) => ({ id, accountId: 'x', createdAt: 1 }));
    const { pagination } = await paginate('volumes', { limit: 1 }, list);
    const refused = (error: unknown): boolean =>
      error instanceof BerthError && error.code === 'schema' && error.details.length === 1;
    const cursor = pagination.nextCursor ?? '';
    await paginate('volumes', { cursor }, list);
    await assert.rejects(paginate('templates', { cursor }, list), refused);
    await checkProperty(
      fc.asyncProperty(
        fc.oneof(
          fc.string({ minLength: 1 }),
          fc.base64String({ minLength: 4 }),
          fc.string().map((text) => Buffer.from(`volumes ${text}`).toString('base64url')),
        ),
        async (text) => {
          if (/^volumes \d{1,16} \S+$/.test(Buffer.from(text, 'base64url').toString())) return;
          await assert.rejects(paginate('volumes', { cursor: text }, list), refused);
        },
      ),
    );
    for (const inner of [
      'volumes 1 a\0b',
      'volumes 99999999999999999 a',
      'volumes -1 a',
      'volumes 1',
      'volumes  1 a',
      '',
    ]) {
      await assert.rejects(
        paginate('volumes', { cursor: Buffer.from(inner).toString('base64url') }, list),
        refused,
        inner,
      );
    }
  });
});
