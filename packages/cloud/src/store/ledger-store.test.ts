import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES, createTestDatabase } from '../../../testing/src/test-database.ts';
import type { TestDatabase } from '../../../testing/src/test-database.ts';
import { seededNumbers } from '../../../testing/src/property-testing.ts';
import {
  recountUsage,
  simulateUsageYear,
  SIMULATED_YEAR,
} from '../../../testing/src/simulated-usage-year.ts';
import { Billing } from '../metering/billing.ts';
import type { BillingGrouping, HistoryQuery } from '../metering/billing.ts';
import { BUCKET_SIZES } from '../domain/time-buckets.ts';
import { Sealer } from '../support/crypto.ts';
import { byKey, caller, counted, iso, use } from './ledger-store.fixture.ts';
import { openStore } from './open-store.ts';
import type { Store } from './store.ts';
import type { ResourceUsage, UsageTotal } from '../domain/usage-records.ts';

const PODS = 60;
for (const kind of DATABASES) {
  describe(`the ledger, on ${kind}`, () => {
    let place: TestDatabase;
    let store: Store;
    let now = SIMULATED_YEAR.end;
    let billing: Billing;
    before(async () => {
      place = await createTestDatabase(kind);
      store = await openStore({
        database: place.url,
        data: place.data,
        poolSize: 5,
        sealer: new Sealer(Buffer.alloc(32, 7)),
        onError: () => undefined,
      });
      billing = new Billing(store.ledger, { now: () => now });
    });
    after(async () => {
      await store.close();
      await place.drop();
    });
    /** The same from the roll-ups and, with a filter that lets all of it through, from the intervals. */
    const totalsOfBoth = async (
      accountId: string,
      query: HistoryQuery,
      dataCenterId = 'D',
    ): Promise<readonly UsageTotal[]> => {
      const { totals } = await billing.history(caller(accountId), 'pod', query);
      const filter = { dataCenterIds: [dataCenterId] };
      const again = await billing.history(caller(accountId), 'pod', { ...query, filter });
      assert.deepEqual(again.totals, totals, `${query.bucketSize} ${query.grouping}`);
      return totals;
    };
    const total = async (
      accountId: string,
      from: number,
      to: number,
    ): Promise<Pick<UsageTotal, 'seconds' | 'amounts'>[]> => {
      const { totals } = await billing.history(caller(accountId), 'pod', {
        startTime: iso(from),
        endTime: iso(to),
        bucketSize: 'hour',
        grouping: 'none',
      });
      return totals.map(({ seconds, amounts }) => ({ seconds, amounts }));
    };

    test('equals a recount, in every bucket and grouping, from the roll-ups and from the intervals', async () => {
      const pods = simulateUsageYear(PODS, seededNumbers(), 'year');
      const events = pods.flatMap(({ changes }) => changes).sort((one, other) => one.at - other.at);
      for (let index = 0; index < events.length; index += 50)
        await store.ledger.recordUsage(events.slice(index, index + 50));
      const groupings: [BillingGrouping, (use: ResourceUsage) => string][] = [
        ['none', () => ''],
        ['resource', ({ resourceId }) => resourceId],
        ['gpuType', ({ gpuTypeId }) => gpuTypeId ?? ''],
      ];
      for (const bucketSize of BUCKET_SIZES) {
        for (const [grouping, groupOf] of groupings) {
          const wish = {
            startTime: iso(SIMULATED_YEAR.start),
            endTime: iso(SIMULATED_YEAR.end),
            bucketSize,
            grouping,
          };
          const totals = await totalsOfBoth('year', wish, 'LOCAL-1');
          // Weeks reach over the edges of a year, so they are compared with the intervals alone.
          if (bucketSize !== 'week')
            assert.deepEqual(
              byKey(counted(totals)),
              byKey([...recountUsage(pods, bucketSize, groupOf)]),
              `${bucketSize} ${grouping}`,
            );
        }
      }
    });

    test('counts a window in the middle as the whole does, whatever began before it', async () => {
      const days = (from: number, to: number) =>
        billing.history(caller('year'), 'pod', {
          startTime: iso(from),
          endTime: iso(to),
          bucketSize: 'day',
          grouping: 'resource',
        });
      const whole = await days(SIMULATED_YEAR.start, SIMULATED_YEAR.end);
      for (const [from, to] of [
        [Date.UTC(2025, 4, 3), Date.UTC(2025, 4, 9)],
        [Date.UTC(2025, 11, 30), SIMULATED_YEAR.end],
        [SIMULATED_YEAR.start, Date.UTC(2025, 0, 2)],
      ] as const) {
        const expected = whole.totals.filter(({ start }) => start >= from / 1000 && start < to / 1000);
        assert.deepEqual((await days(from, to)).totals, expected);
      }
    });

    test('writes an interval once, however often it is recorded', async () => {
      const at = Date.UTC(2030, 0);
      await Promise.all(
        Array.from({ length: 5 }, () =>
          store.ledger.recordUsage([
            { unitId: 'once', usage: { ...use, accountId: 'once', unitId: 'once' }, at },
          ]),
        ),
      );
      await Promise.all(
        Array.from({ length: 5 }, () =>
          store.ledger.recordUsage([{ unitId: 'once', usage: null, at: at + 10_000 }]),
        ),
      );
      now = at + 60_000;
      assert.deepEqual(await total('once', at, at + 1), [
        { seconds: 10, amounts: { gpu: 4_000_000_000n, cpu: 0n, disk: 10_000n, fastDisk: 0n } },
      ]);
    });

    test('never counts below zero when the clock is set back', async () => {
      const at = Date.UTC(2031, 0, 1, 12);
      const back = { ...use, accountId: 'back', unitId: 'back' };
      now = at - 7_200_000;
      await store.ledger.recordUsage([{ unitId: 'back', usage: back, at }]);
      assert.deepEqual(
        (await total('back', at - 7_200_000, at + 1)).map(({ seconds }) => seconds),
        [0],
        'it began in a future that is not yet',
      );
      await store.ledger.recordUsage([{ unitId: 'back', usage: null, at: at - 3_600_000 }]);
      now = at + 3_600_000;
      assert.deepEqual(
        (await total('back', at - 7_200_000, at + 1)).map(({ seconds }) => seconds),
        [0],
      );
      const [interval] = await store.ledger.listIntervals({
        accountId: 'back',
        kind: 'pod',
        from: 0,
        to: now / 1000,
      });
      assert.deepEqual(
        [interval?.beganAt, interval?.endedAt],
        [at / 1000, at / 1000],
        'it ends where it began',
      );
    });

    test('rounds what ran without a break once, and up for workers', async () => {
      const at = Date.UTC(2032, 0) + 300;
      const cut = { ...use, accountId: 'cut', unitId: 'cut' };
      for (const [index, diskInGb] of [10, 20, 30].entries())
        await store.ledger.recordUsage([
          { unitId: 'cut', usage: { ...cut, diskInGb }, at: at + index * 800 },
        ]);
      await store.ledger.recordUsage([{ unitId: 'cut', usage: null, at: at + 2_400 }]);
      for (const kind of ['pod', 'serverless'] as const) {
        await store.ledger.recordUsage([
          { unitId: kind, usage: { ...cut, unitId: kind, accountId: 'short', kind }, at },
          { unitId: kind, usage: null, at: at + 1_200 },
        ]);
        await store.ledger.recordUsage([
          { unitId: kind, usage: { ...cut, unitId: kind, accountId: 'shortest', kind }, at },
          { unitId: kind, usage: null, at: at + 1 },
        ]);
      }
      now = at + 60_000;
      assert.deepEqual(
        (await total('cut', at, at + 1)).map(({ seconds }) => seconds),
        [2],
        '2.4 s are two, in however many pieces',
      );
      assert.deepEqual(
        (await total('short', at, at + 1)).map(({ seconds }) => seconds),
        [1],
      );
      assert.deepEqual(
        (await total('shortest', at, at + 1)).map(({ seconds }) => seconds),
        [1],
        'what ran ran for one',
      );
      assert.deepEqual(
        (
          await billing.history(caller('short'), 'serverless', {
            lastN: 1,
            bucketSize: 'hour',
            grouping: 'none',
          })
        ).totals.map(({ seconds }) => seconds),
        [2],
      );
      const intervals = await store.ledger.listIntervals({
        accountId: 'cut',
        kind: 'pod',
        from: Math.floor(at / 1000),
        to: Math.floor(at / 1000) + 100,
      });
      assert.deepEqual(
        intervals.map(({ addedInGb, diskInGb }) => [addedInGb, diskInGb]),
        [
          [10, 10],
          [10, 20],
          [10, 30],
        ],
      );
    });

    test('shows no more of what runs than a price change or its end charges', async () => {
      const start = Date.UTC(2032, 5);
      const shown = async (accountId: string): Promise<number> =>
        (
          await billing.history(caller(accountId), 'pod', {
            startTime: iso(start),
            endTime: iso(start + 1),
            bucketSize: 'hour',
            grouping: 'none',
            filter: { dataCenterIds: ['D'] },
          })
        ).totals.reduce((sum, { seconds }) => sum + seconds, 0);
      for (const fraction of [0, 300, 499, 500, 700, 990])
        for (const elapsed of [10, 300, 499, 500, 510, 990, 1_010, 1_499, 1_500, 1_990, 2_010]) {
          const accountId = `shown ${fraction} ${elapsed}`;
          const running = { ...use, accountId, unitId: accountId };
          const repriced = { ...running, rates: { ...use.rates, gpu: 1 } };
          const at = start + fraction;
          now = at + elapsed;
          await store.ledger.recordUsage([{ unitId: accountId, usage: running, at }]);
          const before = await shown(accountId);
          await store.ledger.recordUsage([{ unitId: accountId, usage: repriced, at: now }]);
          const [first] = await store.ledger.listIntervals({ accountId, kind: 'pod', from: 0, to: now });
          const charged = (first?.endedAt ?? 0) - (first?.beganAt ?? 0);
          assert.equal(charged, Math.max(1, Math.round(elapsed / 1000)), accountId);
          assert.ok(before <= charged, `${accountId}: ${before} s shown, ${charged} s charged`);
          await store.ledger.recordUsage([{ unitId: accountId, usage: null, at: now }]);
          assert.equal(await shown(accountId), charged, accountId);
        }
    });

    test('keeps sums exact beyond what a JavaScript number holds', async () => {
      const at = Date.UTC(2033, 0) + 86_399_000;
      const rate = 29_999_999_999_999;
      for (let index = 0; index < 3; index += 1) {
        const unitId = `dear${index}`;
        await store.ledger.recordUsage([
          { unitId, usage: { ...use, accountId: 'dear', unitId, rates: { ...use.rates, gpu: rate } }, at },
        ]);
      }
      now = at + 1_000;
      assert.equal(
        (
          await billing.history(caller('dear'), 'pod', {
            startTime: iso(at),
            bucketSize: 'day',
            grouping: 'none',
          })
        ).totals[0]?.amounts.gpu,
        3n * BigInt(rate),
      );
    });

    test('keeps amounts exact that are longer than 64 bits, from the roll-ups as from the intervals', async () => {
      const at = Date.UTC(2035, 0, 1, 7, 13, 21);
      const rate = 29_999_999_999_999;
      const ends = [Date.UTC(2035, 1, 3, 5), Date.UTC(2035, 6, 1), Date.UTC(2036, 0, 1, 0, 0, 1)];
      for (const [index, end] of ends.entries()) {
        const unitId = `long${index}`;
        await store.ledger.recordUsage([
          { unitId, usage: { ...use, accountId: 'long', unitId, rates: { ...use.rates, gpu: rate } }, at },
        ]);
        await store.ledger.recordUsage([{ unitId, usage: null, at: end }]);
      }
      now = Date.UTC(2036, 1);
      for (const bucketSize of ['day', 'week', 'month', 'year'] as const) {
        const wish = {
          startTime: iso(at),
          endTime: iso(Date.UTC(2036, 0, 2)),
          bucketSize,
          grouping: 'none',
        } as const;
        const totals = await totalsOfBoth('long', wish);
        const seconds = ends.reduce((sum, end) => sum + BigInt(Math.round((end - at) / 1000)), 0n);
        assert.equal(
          totals.reduce((sum, { amounts }) => sum + amounts.gpu, 0n),
          seconds * BigInt(rate),
          bucketSize,
        );
      }
    });

    test('shows kinds of hardware together that have no GPU, whenever each began', async () => {
      const at = Date.UTC(2037, 2, 30, 1);
      for (const [index, cpuFlavorId] of ['cpu3c', 'cpu5c', 'cpu5g'].entries()) {
        const unitId = `cpu${index}`;
        const one = {
          ...use,
          accountId: 'cpus',
          unitId,
          resourceId: unitId,
          gpuTypeId: null,
          cpuFlavorId,
          rates: { gpu: 0, cpu: 7 + index, disk: 1, fastDisk: 0 },
        };
        await store.ledger.recordUsage([{ unitId, usage: one, at: at + index * 30_000_000 }]);
        await store.ledger.recordUsage([{ unitId, usage: null, at: at + 500_000_000 - index * 100_000_000 }]);
      }
      now = Date.UTC(2037, 4);
      for (const bucketSize of ['hour', 'day', 'week', 'month'] as const) {
        for (const grouping of ['gpuType', 'hardware'] as const) {
          const wish = { startTime: iso(at), endTime: iso(at + 600_000_000), bucketSize, grouping };
          await totalsOfBoth('cpus', wish);
        }
      }
    });

    test('counts hours in the middle of a month as the intervals do, whatever began before them', async () => {
      now = SIMULATED_YEAR.end;
      for (const from of [Date.UTC(2025, 0), Date.UTC(2025, 4, 17), Date.UTC(2025, 11, 31, 5)]) {
        for (const grouping of ['none', 'hardware'] as const) {
          const wish = {
            startTime: iso(from),
            endTime: iso(from + 50 * 3_600_000),
            bucketSize: 'hour',
            grouping,
          } as const;
          assert.ok((await totalsOfBoth('year', wish, 'LOCAL-1')).length > 0);
        }
      }
    });

    test('loses nothing where many write to one month at once, from two servers where there may be two', async () => {
      const other =
        kind === 'sqlite'
          ? store
          : await openStore({
              database: place.url,
              data: place.data,
              poolSize: 5,
              sealer: new Sealer(Buffer.alloc(32, 7)),
              onError: () => undefined,
            });
      const at = Date.UTC(2038, 5, 1);
      const pods = simulateUsageYear(40, seededNumbers(), 'busy').map(({ id, changes }) => ({
        id,
        changes: changes.map((change, index) => ({
          unitId: `busy ${id}`,
          usage: change.usage && { ...change.usage, unitId: `busy ${id}` },
          at: at + index * 40_000_000,
        })),
      }));
      await Promise.all(
        pods.map(async ({ changes }, index) => {
          for (const change of changes) await (index % 2 === 0 ? store : other).ledger.recordUsage([change]);
        }),
      );
      now = Date.UTC(2038, 8);
      for (const bucketSize of BUCKET_SIZES) {
        for (const grouping of ['none', 'resource', 'hardware'] as const) {
          const wish = { startTime: iso(at), endTime: iso(Date.UTC(2038, 7)), bucketSize, grouping };
          assert.ok((await totalsOfBoth('busy', wish, 'LOCAL-1')).length > 0);
        }
      }
      if (other !== store) await other.close();
    });

    test('lists the current use of one account', async () => {
      now = Date.UTC(2034, 0);
      await store.ledger.recordUsage([
        { unitId: 'mine', usage: { ...use, accountId: 'mine', unitId: 'mine' }, at: now },
        {
          unitId: 'vol',
          usage: {
            ...use,
            accountId: 'mine',
            unitId: 'vol',
            kind: 'volume',
            isRunning: false,
            tier: 'STANDARD',
            gpuTypeId: null,
            rates: { gpu: 0, cpu: 0, disk: 7, fastDisk: 3 },
          },
          at: now,
        },
      ]);
      assert.deepEqual(await billing.currentSpend(caller('mine')), {
        total: 0.40000101,
        compute: 0.4,
        localStorage: 0.000001,
        networkStorage: 0.00000001,
      });
      assert.deepEqual((await billing.currentSpend(caller('nobody'))).total, 0);
      assert.deepEqual(await total('nobody', now - 1, now + 1), []);
    });
  });
}
