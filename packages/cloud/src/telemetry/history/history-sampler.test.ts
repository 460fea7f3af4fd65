import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import { DATABASES } from '../../../../testing/src/test-database.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';
import type { CloudEvents } from '../../domain/events.ts';
import { HOUR_MS, MINUTE_MS } from '../../domain/history/rollup.ts';
import type { Rollup } from '../../domain/history/rollup.ts';
import type { HistoryStore } from '../../store/history-store.ts';
import { historyTable } from '../../store/tables/history.table.ts';
import { ManualClock } from '../../support/clock.ts';
import { EventBus } from '../../support/event-bus.ts';
import { createLog } from '../../support/log.ts';
import { HistorySampler } from './history-sampler.ts';
import type { SampledInstance, SampledUsage } from './history-sampler.ts';

const START = Date.UTC(2026, 0, 1);

for (const kind of DATABASES) {
  describe(`the sampler of the history, on ${kind}`, () => {
    let place: MigratedDatabase;
    let store: HistoryStore;
    let clock: ManualClock;
    let events: EventBus<CloudEvents>;
    let sampler: HistorySampler;
    let instances: SampledInstance[];
    before(async () => {
      place = await createMigratedDatabase(kind);
      store = historyTable(place.database);
    });
    after(() => place.drop());
    beforeEach(() => {
      clock = new ManualClock(START);
      events = new EventBus<CloudEvents>();
      instances = [];
      sampler = new HistorySampler({
        store,
        workerCounts: () => [{ endpointId: 'counted', counts: { running: 2, idle: 0 } }],
        instances: async () => instances,
        events,
        clock,
        keepDays: 30,
        log: createLog({ level: 'silent', format: 'json' }),
      });
    });

    const using = (resourceId: string, usage: SampledUsage | undefined): SampledInstance => ({
      resourceId,
      dataCenterId: 'LOCAL-1',
      usage: async () => usage,
    });
    /** What is stored of a minute. */
    const minute = async (resourceId: string, start = START): Promise<Rollup | undefined> =>
      (await store.read(resourceId, 'minute', start, start + MINUTE_MS))[0]?.data;

    test('cores, memory, GPUs and workers are kept with their number, sum and maximum', async () => {
      instances = [
        using('pod', { cpu: 0.5, memoryInBytes: 1_000, gpus: [{ util: 50, memoryUtil: 20 }] }),
        using('pod', { cpu: 1.5, memoryInBytes: 3_000, gpus: [{ util: 100, memoryUtil: 40 }] }),
        using('gone', undefined),
        {
          resourceId: 'broken',
          dataCenterId: 'LOCAL-1',
          usage: () => Promise.reject(new Error('the engine does not answer')),
        },
      ];
      await sampler.sample();
      assert.deepEqual(
        [...sampler.gpuUse()],
        [{ dataCenterId: 'LOCAL-1', gpus: 2, util: 1.5, memoryUtil: 0.6000000000000001 }],
      );
      assert.equal(await minute('pod'), undefined, 'the minute is not over');
      clock.advance(MINUTE_MS);
      await sampler.sample();
      const { cpu, memory, gpu, gpuMemory } = (await minute('pod')) ?? {};
      assert.deepEqual(
        { cpu, memory, gpu },
        {
          cpu: [2, 2, 1.5],
          memory: [2, 4_000, 3_000],
          gpu: [2, 1.5, 1],
        },
      );
      assert.deepEqual([gpuMemory?.[0], gpuMemory?.[2]], [2, 0.4]);
      assert.deepEqual(await minute('counted'), { 'workers/running': [1, 2, 2] });
      assert.deepEqual([await minute('gone'), await minute('broken')], [undefined, undefined]);
    });

    test('a worker has rows of its own, of minutes only, beside those of its endpoint', async () => {
      const worker = (workerId: string, cpu: number): SampledInstance => ({
        ...using('endpoint', { cpu, memoryInBytes: 1, gpus: [{ util: 50, memoryUtil: 20 }] }),
        workerId,
      });
      instances = [worker('w1', 1), worker('w2', 3)];
      await sampler.sample();
      await sampler.sample();
      await sampler.close();
      assert.deepEqual((await minute('endpoint'))?.['cpu'], [4, 8, 3]);
      assert.deepEqual((await minute('endpoint/w1'))?.['cpu'], [2, 2, 1]);
      assert.deepEqual((await minute('endpoint/w2'))?.['gpu'], [2, 1, 0.5]);
      assert.deepEqual(await store.read('endpoint/w1', 'hour', START, START + HOUR_MS), []);
      assert.equal((await store.read('endpoint', 'hour', START, START + HOUR_MS)).length, 1);
    });

    test('a stop writes the minute that has begun, and cold starts are part of it', async () => {
      sampler.start();
      events.publish('worker.ready', {
        worker: {
          endpointId: 'started',
          createdAt: START,
          imageReadyAt: START + 100,
          startedAt: START + 300,
          readyAt: START + 1_000,
        } as Worker,
      });
      await sampler.close();
      const started = await minute('started');
      assert.deepEqual(
        Object.entries(started ?? {}).map(([name, [, total]]) => [name, total]),
        [
          ['start/image', 100],
          ['start/start', 200],
          ['start/connect', 700],
          ['start/total', 1_000],
        ],
      );
    });

    test('of many instances some are read in each round, and all have their turn', async () => {
      const read = new Set<number>();
      let reads = 0;
      instances = Array.from({ length: 450 }, (_, number) => ({
        resourceId: `many-${number}`,
        dataCenterId: 'LOCAL-1',
        usage: async () => {
          read.add(number);
          reads += 1;
          return undefined;
        },
      }));
      for (let round = 0; round < 3; round += 1) {
        await sampler.sample();
        assert.equal(reads, 200 * (round + 1), 'the work of a round is bounded');
      }
      assert.equal(read.size, 450);
    });

    test('minutes go after two days and hours after their time', async () => {
      instances = [using('old', { cpu: 1, memoryInBytes: 1, gpus: [] })];
      await sampler.sample();
      clock.advance(MINUTE_MS);
      await sampler.sample();
      assert.notEqual(await minute('old'), undefined);
      instances = [];
      clock.advance(49 * HOUR_MS);
      await sampler.sample();
      assert.equal(await minute('old'), undefined);
      assert.equal((await store.read('old', 'hour', START, START + HOUR_MS)).length, 1);
      clock.advance(30 * 24 * HOUR_MS);
      await sampler.sample();
      assert.deepEqual(await store.read('old', 'hour', START, START + HOUR_MS), []);
    });

    test('the rows of minutes are bounded: the oldest go first', async () => {
      const rows = Array.from({ length: 50 }, (_, number) => ({
        resourceId: 'bounded',
        minute: START + number * MINUTE_MS,
        data: { cpu: [1, 1, 1] } satisfies Rollup,
      }));
      await store.addSamples(rows);
      const all = (await store.read('bounded', 'minute', START, START + HOUR_MS)).length;
      assert.equal(all, 50);
      await store.trim({ minutesFrom: 0, hoursFrom: 0, maxMinutes: 10 });
      const left = await store.read('bounded', 'minute', START, START + HOUR_MS);
      assert.ok(left.length <= 10);
      assert.equal(left.at(-1)?.start, START + 49 * MINUTE_MS);
    });
  });
}
