import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DATABASES, freshDatabase } from '../../../../../tests/support/databases.ts';
import { randomNumbers } from '../../../../../tests/support/seed.ts';
import { recount, simulatedYear, YEAR } from '../../../../../tests/support/simulated-year.ts';
import { Billing } from '../../metering/billing.ts';
import type { Caller } from '../../resources/caller.ts';
import { Sealer } from '../../support/crypto.ts';
import { migrate } from '../migrate.ts';
import { openDatabase, storeOver } from '../open.ts';
import { FIELD, PackedSums } from '../packed-sums.ts';
import { changes, name, rows, rowValues, sql } from '../sql.ts';
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
      const [place, old] = [await freshDatabase(kind), await freshDatabase(kind)];
      const options = { poolSize: 2, onError: () => undefined };
      const [database, before] = [
        await openDatabase({ ...options, database: place.url, data: place.data }),
        await openDatabase({ ...options, database: old.url, data: old.data }),
      ];
      try {
        await migrate(database);
        await migrate(before, migrations.slice(0, BEFORE));
        const store = storeOver(database, new Sealer(Buffer.alloc(32, 7)));
        const pods = simulatedYear(30, randomNumbers(), 'year');
        const events = pods.flatMap(({ changes: some }) => some).sort((one, other) => one.at - other.at);
        const half = Math.floor(events.length / 2);
        await store.ledger.settle(events.slice(0, half));
        // Beyond what a JavaScript number holds, in another account.
        const dear = events.find(({ use }) => use !== null)?.use ?? assert.fail();
        await store.ledger.settle([
          {
            unitId: 'dear',
            use: {
              ...dear,
              accountId: 'dear',
              unitId: 'dear',
              rates: { ...dear.rates, gpu: 89_999_999_999_999 },
            },
            at: YEAR.end - 1_000,
          },
        ]);

        await copyAsBefore(database.read, before.write);
        assert.equal(await migrate(before), migrations.length - BEFORE);
        const after = storeOver(before, new Sealer(Buffer.alloc(32, 7)));
        const all = (): Steps<Row[]> =>
          rows<Row>(
            sql`select account_id, grouping_by, kind, level, bucket, group_id, days from usage_sums order by 1, 2, 3, 4, 5, 6`,
          );
        const told = (list: Row[]): unknown[] =>
          list.map(({ days, ...key }) => ({
            ...key,
            days: days instanceof Uint8Array ? Buffer.from(days).toString('hex') : days,
          }));
        assert.deepEqual(told(await before.read(all)), told(await database.read(all)));

        await after.ledger.settle(events.slice(half));
        const billing = new Billing(after.ledger, { now: () => YEAR.end });
        for (const bucketSize of ['day', 'month', 'year'] as const) {
          const { tallies } = await billing.history(caller, 'pod', {
            startTime: iso(YEAR.start),
            endTime: iso(YEAR.end),
            bucketSize,
            grouping: 'resource',
          });
          const used = tallies.filter(
            ({ seconds, amounts }) => seconds > 0 || Object.values(amounts).some((amount) => amount > 0n),
          );
          assert.deepEqual(
            new Map(
              used.map(({ start, group, amounts, seconds }) => [`${start} ${group}`, { amounts, seconds }]),
            ),
            recount(pods, bucketSize, ({ resourceId }) => resourceId),
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
  const sums = await read(() => rows<Row>(sql`select ${name(columns.join(', '))} from usage_sums`));
  await write(function* () {
    for (const { id: _, ...stretch } of stretches)
      yield* changes(sql`insert into usage_stretches ${rowValues(stretch)}`);
    for (const { days, ...sum } of sums) {
      yield* changes(sql`insert into usage_sums ${rowValues(sum)}`);
      if (!(days instanceof Uint8Array)) continue;
      const packed = new PackedSums(days);
      for (let row = 0; row < packed.count; row += 1) {
        const day: Row = {
          ...sum,
          level: 'day',
          bucket: packed.number(row, FIELD.bucket),
          last_at: packed.number(row, FIELD.lastAt),
          runs: packed.number(row, FIELD.runs),
          runs_late: packed.number(row, FIELD.runsLate),
          disk_in_gb: packed.number(row, FIELD.diskInGb),
          added_in_gb: packed.number(row, FIELD.addedInGb),
        };
        for (const [index, part] of PARTS.entries())
          Object.assign(day, {
            [`${part}_rate`]: packed.number(row, FIELD.rate + index),
            [`${part}_late`]: String(packed.exact(row, FIELD.late + index)),
            [`${part}_late_days`]: 0,
          });
        yield* changes(sql`insert into usage_sums ${rowValues(day)}`);
      }
    }
  });
}
