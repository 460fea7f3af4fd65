import { ACCOUNT_DEFAULTS } from '../domain/records.ts';
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES, createTestDatabase } from '../../../testing/src/test-database.ts';
import type { TestDatabase } from '../../../testing/src/test-database.ts';
import { samplePod } from '../domain/pods/pod.fixture.ts';
import { openStore } from '../store/open-store.ts';
import type { ApiKey, AuditEntry } from '../domain/records.ts';
import type { Store } from '../store/store.ts';
import { ManualClock } from '../support/clock.ts';
import { Sealer } from '../support/crypto.ts';
import { applyPrices } from './repricing.ts';
import { usageRules } from './usage-rules.ts';
import type { UsagePrices } from './usage-rules.ts';
import type { Pod } from '../domain/pods/pod-record.ts';
import type { Worker } from '../domain/endpoints/worker-record.ts';
import type { UsageInterval, UsageKind } from '../domain/usage-records.ts';

const audit = (resourceId: string, at: number): AuditEntry => ({
  at,
  accountId: 'a',
  keyId: null,
  interface: 'system',
  requestId: 'r',
  action: 'create',
  resource: 'pod',
  resourceId,
  changes: [],
});
const key: ApiKey = {
  id: 'k',
  accountId: 'a',
  name: 'k',
  hash: 'h',
  access: 'all',
  scopes: { rest: 'read', graphql: 'none', serverless: 'write' },
  endpoints: null,
  enabled: true,
  root: false,
  createdAt: 1,
  lastUsedAt: null,
  expiresAt: null,
};
const prices = (factor: number): UsagePrices => ({
  gpu: { G: factor },
  cpu: {},
  disk: { networkVolume: 0.73 * factor, stoppedVolume: 0.73 * factor },
});

for (const kind of DATABASES) {
  describe(`new prices, on ${kind}`, () => {
    const clock = new ManualClock(Date.UTC(2026, 0));
    const T0 = clock.now();
    let place: TestDatabase;
    let store: Store;
    const open = async (usage?: UsagePrices): Promise<void> => {
      store = await openStore({
        database: place.url,
        data: place.data,
        poolSize: 3,
        sealer: new Sealer(Buffer.alloc(32, 7)),
        onError: () => undefined,
        ...(usage !== undefined && { usage: usageRules(usage) }),
      });
    };
    /** Restarts the server with these prices. */
    const restart = async (usage: UsagePrices): Promise<void> => {
      await store.close();
      await open(usage);
      await applyPrices({ store, prices: usage, clock });
    };
    before(async () => {
      place = await createTestDatabase(kind);
      await open();
      await store.accounts.insert(
        { id: 'a', name: 'a', ...ACCOUNT_DEFAULTS, createdAt: 1 },
        key,
        audit('a', 1),
      );
    });
    after(async () => {
      await store.close();
      await place.drop();
    });
    const add = (fields: Partial<Pod>): Promise<Pod> =>
      store.pods.insert('a', {}, () => ({
        record: {
          ...samplePod,
          compute: 'GPU',
          gpuTypeId: 'G',
          gpuCount: 1,
          cpuFlavorId: null,
          costPerHour: 0,
          status: 'RUNNING',
          settled: true,
          startedAt: T0,
          endedAt: null,
          ...fields,
        },
        audit: audit(fields.id ?? '', T0),
      }));
    const worker: Worker = {
      id: 'w',
      accountId: 'a',
      endpointId: 'e',
      version: 1,
      dataCenterId: 'D',
      image: 'i',
      gpuTypeId: 'G',
      gpuCount: 2,
      cpuFlavorId: null,
      vcpuCount: 8,
      containerDisk: 5,
      templateId: null,
      state: 'ready',
      handle: null,
      createdAt: T0,
      startedAt: T0,
      imageReadyAt: T0,
      readyAt: T0,
      firstJobAt: null,
      endedAt: null,
      exitCode: null,
      reason: null,
    };
    const listUsage = async (of: UsageKind): Promise<unknown[]> => {
      const intervals = await store.ledger.listIntervals({
        accountId: 'a',
        kind: of,
        from: 0,
        to: clock.now(),
      });
      return intervals.map(({ unitId, beganAt, endedAt, rates }: UsageInterval) => [
        unitId,
        beganAt - T0 / 1000,
        endedAt === null ? null : endedAt - T0 / 1000,
        rates.gpu + rates.disk,
      ]);
    };

    test('units that ran before there was a ledger are counted from their start, at the first prices', async () => {
      await add({ id: 'runs' });
      await add({ id: 'rests', status: 'EXITED', wanted: 'stopped', endedAt: T0, volumeSize: 1_000 });
      await add({ id: 'bids', interruptible: true, bidPerGpu: 0.5, costPerHour: 0.5 });
      await add({ id: 'gone', status: 'TERMINATED', wanted: 'terminated', endedAt: T0, volumeSize: 10 });
      await store.workers.saveWorker({ ...worker, startedAt: null });
      await store.workers.saveWorker(worker);
      await store.volumes.insert(
        {
          id: 'v',
          accountId: 'a',
          name: 'v',
          size: 1_000,
          dataCenterId: 'D',
          type: 'STANDARD',
          createdAt: T0,
        },
        audit('v', T0),
      );
      clock.advance(10_000);
      await restart(prices(1));
      clock.advance(1_000);
      assert.deepEqual((await listUsage('pod')).sort(), [
        ['bids', 0, null, 500_000_000],
        ['rests', 10, null, 1_000_000_000],
        ['runs', 0, null, 1_000_000_000],
      ]);
      assert.deepEqual(await listUsage('serverless'), [['w', 0, null, 2_000_000_000]]);
      assert.deepEqual(await listUsage('volume'), [['v', 10, null, 1_000_000_000]]);
    });

    test('unchanged prices change nothing, and new ones begin a new interval', async () => {
      await restart(prices(1));
      assert.equal((await listUsage('pod')).length, 3);
      clock.advance(9_000);
      await restart(prices(3));
      clock.advance(1_000);
      assert.deepEqual((await listUsage('pod')).sort(), [
        ['bids', 0, null, 500_000_000],
        ['rests', 10, 20, 1_000_000_000],
        ['rests', 20, null, 3_000_000_000],
        ['runs', 0, 20, 1_000_000_000],
        ['runs', 20, null, 3_000_000_000],
      ]);
      assert.deepEqual((await listUsage('serverless')).slice(-1), [['w', 20, null, 6_000_000_000]]);
      assert.deepEqual((await listUsage('volume')).slice(-1), [['v', 20, null, 3_000_000_000]]);
      assert.deepEqual(
        [
          (await store.pods.findInAnyAccount('runs'))?.costPerHour,
          (await store.pods.findInAnyAccount('bids'))?.costPerHour,
        ],
        [3, 0.5],
      );
    });

    test('units that ended meanwhile do not begin again', async () => {
      const { podIds, workerIds, volumeIds } = await store.ledger.listBillableUnits();
      assert.deepEqual([podIds, workerIds, volumeIds], [['bids', 'rests', 'runs'], ['w'], ['v']]);
      await store.pods.observe('runs', (current) => ({
        ...current,
        wanted: 'terminated',
        endedAt: clock.now(),
      }));
      await store.workers.saveWorker({ ...worker, state: 'ended', endedAt: clock.now() });
      await store.volumes.remove('a', 'v', audit('v', clock.now()));
      await store.pods.reprice('runs', () => 7, clock.now(), false);
      await store.ledger.reprice({ kind: 'worker', id: 'w' }, clock.now(), false);
      await store.ledger.reprice({ kind: 'volume', id: 'v' }, clock.now(), false);
      await store.workers.saveWorker(worker);
      clock.advance(1_000);
      for (const usage of ['serverless', 'volume'] as const)
        assert.deepEqual(
          (
            await store.ledger.listIntervals({ accountId: 'a', kind: usage, from: 0, to: clock.now() })
          ).filter(({ endedAt }) => endedAt === null),
          [],
        );
      assert.deepEqual(
        (await store.ledger.currentRates('a')).map((found) => found.kind),
        ['pod'],
        'the two that are left',
      );
    });
  });
}
