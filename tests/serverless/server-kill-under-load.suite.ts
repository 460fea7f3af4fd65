import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { EngineFixture } from '../../packages/testing/src/engine-fixture.ts';
import { listWorkers } from '../../packages/testing/src/deploy-handler.ts';
import { queueWorkerSource } from '../../packages/testing/src/worker-sources.ts';
import { repeats } from '../../packages/testing/src/test-tier.ts';
import { waitForReadyWorkers, serverlessFixture } from '../../packages/testing/src/serverless-fixture.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

const WORKERS = repeats({ usually: 6, long: 20 });
const JOBS = WORKERS * 10;

/** Berth is killed while its workers are busy, and started again. */
export function serverKillUnderLoadSuite(name: string, open: () => Promise<EngineFixture>): void {
  describe(`kill -9 under load, with ${WORKERS} workers of the ${name} engine`, () => {
    const fixture = serverlessFixture(open);

    test('the same workers go on, none is started twice, and no job is lost', {
      timeout: 200_000,
    }, async () => {
      const endpoint = await fixture.deploy(
        'survivor',
        queueWorkerSource('async ({ n, ms }) => { await pause(ms); return { n, pid: process.pid }; }'),
        { workers: { min: WORKERS, max: WORKERS } },
      );
      const workers = await waitForReadyWorkers(fixture, endpoint, WORKERS);
      const before = await fixture.engine.instancesOf(endpoint);
      assert.deepEqual([...before.keys()].sort(), workers);

      const jobs = await Promise.all(
        Array.from({ length: JOBS }, (_, n) => fixture.run(endpoint, { n, ms: 200 + (n % 7) * 100 })),
      );
      await waitFor(
        'all are at work',
        async () =>
          (await listWorkers(fixture.client, endpoint)).filter(({ status }) => status === 'RUNNING')
            .length === WORKERS,
      );
      for (let kills = 0; kills < 2; kills += 1) await fixture.killAndRestart();

      const ended = await Promise.all(jobs.map((id) => fixture.waitForEnd(endpoint, id, 120_000)));
      assert.deepEqual(
        ended.map(({ status, output }) => [status, (output as { n: number } | undefined)?.n]),
        jobs.map((_, n) => ['COMPLETED', n]),
      );
      assert.deepEqual(await waitForReadyWorkers(fixture, endpoint, WORKERS), workers);
      assert.deepEqual([...(await fixture.engine.instancesOf(endpoint))].sort(), [...before].sort());
      await fixture.remove(endpoint);
    });
  });
}
