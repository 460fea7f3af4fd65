import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { EngineUnderTest } from '../support/engine-under-test.ts';
import { until, workersOf } from '../support/serverless.ts';
import { queueWorker } from '../support/small-worker.ts';
import { readyWorkers, serverlessStage } from './stage.ts';

const WORKERS = 20;
const JOBS = 200;

/** Berth is killed while its workers are busy, and started again. */
export function killUnderLoad(name: string, open: () => Promise<EngineUnderTest>): void {
  describe(`kill -9 under load, with ${WORKERS} workers of the ${name} engine`, () => {
    const stage = serverlessStage(open);

    test('the same workers go on, none is started twice, and no job is lost', {
      timeout: 200_000,
    }, async () => {
      const endpoint = await stage.deploy(
        'survivor',
        queueWorker('async ({ n, ms }) => { await pause(ms); return { n, pid: process.pid }; }'),
        { workers: { min: WORKERS, max: WORKERS } },
      );
      const workers = await readyWorkers(stage, endpoint, WORKERS);
      const before = await stage.engine.traces(endpoint);
      assert.deepEqual([...before.keys()].sort(), workers);

      const jobs = await Promise.all(
        Array.from({ length: JOBS }, (_, n) => stage.run(endpoint, { n, ms: 200 + (n % 7) * 100 })),
      );
      await until(
        'all are at work',
        async () =>
          (await workersOf(stage.client, endpoint)).filter(({ status }) => status === 'RUNNING').length ===
          WORKERS,
      );
      for (let kills = 0; kills < 2; kills += 1) await stage.restart();

      const ended = await Promise.all(jobs.map((id) => stage.ended(endpoint, id, 120_000)));
      assert.deepEqual(
        ended.map(({ status, output }) => [status, (output as { n: number } | undefined)?.n]),
        jobs.map((_, n) => ['COMPLETED', n]),
      );
      assert.deepEqual(await readyWorkers(stage, endpoint, WORKERS), workers);
      assert.deepEqual([...(await stage.engine.traces(endpoint))].sort(), [...before].sort());
      await stage.remove(endpoint);
    });
  });
}
