import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DATABASES, createTestDatabase } from '../../../../testing/src/test-database.ts';
import { seededNumbers } from '../../../../testing/src/property-testing.ts';
import {
  recountUsage,
  simulateUsageYear,
  SIMULATED_YEAR,
} from '../../../../testing/src/simulated-usage-year.ts';
import { Billing } from '../../metering/billing.ts';
import type { Caller } from '../../domain/caller.ts';
import { Sealer } from '../../support/crypto.ts';
import { migrate } from './migrate.ts';
import { openDatabase, createStore } from '../open-store.ts';
import { FIELD, PackedSums } from '../../domain/packed-sums.ts';
import { execute, raw, rows, rowValues, sql } from '../sql.ts';
import type { Row, Steps } from '../sql.ts';
import { migrations } from './migrations.ts';

const BEFORE = 10;
const PARTS = ['gpu', 'cpu', 'disk', 'fast_disk'];
const caller: Caller = {
  accountId: 'year',
  keyId: null,
  operator: false,
  fullAccess: true,
  interface: 'rest-v2',
  requestId: '',
};
const iso = (milliseconds: number): string => new Date(milliseconds).toISOString();

for (const kind of DATABASES) {
  describe(`days that were rows, on ${kind}`, () => {
    test('are in the rows of their months afterwards, exactly as if they had been written there', async () => {
      const [place, old] = [
        await createTestDatabase(kind, { empty: true }),
        await createTestDatabase(kind, { empty: true }),
      ];
      const options = { poolSize: 2, onError: () => undefined };
      const [database, before] = [
        await openDatabase({ ...options, database: place.url, data: place.data }),
        await openDatabase({ ...options, database: old.url, data: old.data }),
      ];
      try {
        await migrate(database);
        await migrate(before, migrations.slice(0, BEFORE));
        const store = createStore(database, new Sealer(Buffer.alloc(32, 7)));
        const pods = simulateUsageYear(30, seededNumbers(), 'year');
        const events = pods.flatMap(({ changes: some }) => some).sort((one, other) => one.at - other.at);
        const half = Math.floor(events.length / 2);
        await store.ledger.recordUsage(events.slice(0, half));
        // Beyond what a JavaScript number holds, in another account.
        const dear = events.find(({ usage }) => usage !== null)?.usage ?? assert.fail();
        await store.ledger.recordUsage([
          {
            unitId: 'dear',
            usage: {
              ...dear,
              accountId: 'dear',
              unitId: 'dear',
              rates: { ...dear.rates, gpu: 89_999_999_999_999 },
            },
            at: SIMULATED_YEAR.end - 1_000,
          },
        ]);

        await copyAsBefore(database.read, before.write);
        assert.equal(await migrate(before), migrations.length - BEFORE);
        const after = createStore(before, new Sealer(Buffer.alloc(32, 7)));
        const all = (): Steps<Row[]> =>
          rows<Row>(
            sql`select account_id, grouping_by, kind, level, bucket, group_id, days from usage_sums
              order by 1, 2, 3, 4, 5, 6`,
          );
        const told = (list: Row[]): unknown[] =>
          list.map(({ days, ...key }) => ({
            ...key,
            days: days instanceof Uint8Array ? Buffer.from(days).toString('hex') : days,
          }));
        assert.deepEqual(told(await before.read(all)), told(await database.read(all)));

        await after.ledger.recordUsage(events.slice(half));
        const billing = new Billing(after.ledger, { now: () => SIMULATED_YEAR.end });
        for (const bucketSize of ['day', 'month', 'year'] as const) {
          const { totals } = await billing.history(caller, 'pod', {
            startTime: iso(SIMULATED_YEAR.start),
            endTime: iso(SIMULATED_YEAR.end),
            bucketSize,
            grouping: 'resource',
          });
          const used = totals.filter(
            ({ seconds, amounts }) => seconds > 0 || Object.values(amounts).some((amount) => amount > 0n),
          );
          assert.deepEqual(
            new Map(
              used.map(({ start, group, amounts, seconds }) => [`${start} ${group}`, { amounts, seconds }]),
            ),
            recountUsage(pods, bucketSize, ({ resourceId }) => resourceId),
            bucketSize,
          );
        }
      } finally {
        await Promise.all([database.close(), before.close()]);
        await Promise.all([place.drop(), old.drop()]);
      }
    });
  });
}

/** The ledger as it was kept when each day had a row. */
async function copyAsBefore(
  read: <T>(steps: () => Steps<T>) => Promise<T>,
  write: <T>(steps: () => Steps<T>) => Promise<T>,
): Promise<void> {
  const stretches = await read(() => rows<Row>(sql`select * from usage_stretches order by id`));
  const columns = [
    'account_id',
    'grouping_by',
    'kind',
    'level',
    'bucket',
    'group_id',
    'runs',
    'runs_late',
    'disk_in_gb',
    'added_in_gb',
    'last_at',
    'days',
    ...PARTS.flatMap((part) => [
      `${part}_rate`,
      `cast(${part}_late as text) as ${part}_late`,
      `${part}_late_days`,
    ]),
  ];
  const sums = await read(() => rows<Row>(sql`select ${raw(columns.join(', '))} from usage_sums`));
  await write(function* () {
    for (const { id: _, ...stretch } of stretches)
      yield* execute(sql`insert into usage_stretches ${rowValues(stretch)}`);
    for (const { days, ...sum } of sums) {
      yield* execute(sql`insert into usage_sums ${rowValues(sum)}`);
      if (!(days instanceof Uint8Array)) continue;
      const packed = new PackedSums(days);
      for (let row = 0; row < packed.count; row += 1) {
        const day: Row = {
          ...sum,
          level: 'day',
          bucket: packed.toNumber(row, FIELD.bucket),
          last_at: packed.toNumber(row, FIELD.lastAt),
          runs: packed.toNumber(row, FIELD.runs),
          runs_late: packed.toNumber(row, FIELD.runsLate),
          disk_in_gb: packed.toNumber(row, FIELD.diskInGb),
          added_in_gb: packed.toNumber(row, FIELD.addedInGb),
        };
        for (const [index, part] of PARTS.entries())
          Object.assign(day, {
            [`${part}_rate`]: packed.toNumber(row, FIELD.rate + index),
            [`${part}_late`]: String(packed.toBigInt(row, FIELD.late + index)),
            [`${part}_late_days`]: 0,
          });
        yield* execute(sql`insert into usage_sums ${rowValues(day)}`);
      }
    }
  });
}
