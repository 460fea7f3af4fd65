import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { EngineFixture } from '../../packages/testing/src/engine-fixture.ts';
import { listWorkers } from '../../packages/testing/src/deploy-handler.ts';
import { loadBalancedWorkerSource, queueWorkerSource } from '../../packages/testing/src/worker-sources.ts';
import { repeats } from '../../packages/testing/src/test-tier.ts';
import { waitForReadyWorkers, serverlessFixture } from '../../packages/testing/src/serverless-fixture.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

const MEGABYTES = repeats({ usually: 20, long: 100 });

/**
 * Workers that do what no worker should: it is said, others are not affected, and nothing is left of them.
 */
export function faultyWorkersSuite(name: string, open: () => Promise<EngineFixture>): void {
  describe(`bad workers of the ${name} engine`, { concurrency: 2 }, () => {
    const fixture = serverlessFixture(open);

    test('one that crashes at once: the last thing it said is the reason of what waits', async () => {
      const endpoint = await fixture.deploy('broken', "throw new Error('the model file is missing');");
      const job = await fixture.run(endpoint, 1);
      const fine = await fixture.deploy('fine', queueWorkerSource('async (n) => n'));
      assert.equal((await fixture.runSync(fine, 7)).output, 7);
      assert.match(await fixture.waitForReason(endpoint, job, /the model file is missing/), /in a row/);
      const { body } = await fixture.client.call<{ reason: string }>(
        'GET',
        `/v2/serverless/${endpoint}/workers`,
      );
      assert.match(body.reason, /the model file is missing/);
      await waitFor(
        'it counts as unhealthy',
        async () =>
          (await fixture.client.call<{ workers: { unhealthy: number } }>('GET', `/v2/${endpoint}/health`))
            .body.workers.unhealthy > 0,
      );
      await fixture.remove(endpoint);
    });

    test('one that exits after each job: another does the next', async () => {
      const endpoint = await fixture.deploy(
        'mayfly',
        queueWorkerSource('async (n) => (setTimeout(() => process.exit(0), 100), n)'),
      );
      for (let n = 0; n < 3; n += 1) {
        assert.equal((await fixture.runSync(endpoint, n)).output, n);
        await waitFor('it is gone', async () => (await listWorkers(fixture.client, endpoint)).length === 0);
      }
      await fixture.remove(endpoint);
    });

    test('one that never answers its health check: it is reported, and requests get 503 with Retry-After', async () => {
      const code = loadBalancedWorkerSource(
        '(request, response) => response.end()',
        '(request, response) => response.writeHead(500).end()',
      );
      const endpoint = await fixture.deploy('mute', code, {
        type: 'LOAD_BALANCER',
        scaling: { type: 'REQUEST_COUNT', requestCount: 1 },
        workers: { min: 1, max: 1, idleTimeout: 5 },
        env: { RUNPOD_INIT_TIMEOUT: '1' },
      });
      await waitFor(
        'the reason is told',
        async () =>
          (
            await fixture.client.call<{ reason: string | null }>('GET', `/v2/serverless/${endpoint}/workers`)
          ).body.reason?.includes('not ready within 1 s') === true,
      );
      await fixture.remove(endpoint);
    });

    test(`one that writes ${MEGABYTES} MB to its log: the job ends, the last line is there, others are not affected`, {
      timeout: 120_000,
    }, async () => {
      const code = queueWorkerSource(`async ({ lines }) => {
        const line = 'x'.repeat(1023) + '\\n';
        const write = (text) => new Promise((resolve) => process.stdout.write(text, resolve));
        for (let n = 0; n < lines; n += 1) await write(line);
        await write('that was all\\n');
        return lines;
      }`);
      const endpoint = await fixture.deploy('talker', code);
      const fine = await fixture.deploy('listener', queueWorkerSource('async (n) => n'), {
        workers: { min: 1, max: 1 },
      });
      await waitForReadyWorkers(fixture, fine, 1);
      const job = await fixture.run(endpoint, { lines: MEGABYTES * 1024 });
      let slowest = 0;
      const done = fixture.waitForEnd(endpoint, job, 100_000);
      for (let over = false; !over; ) {
        const from = performance.now();
        assert.equal((await fixture.runSync(fine, 1)).output, 1);
        slowest = Math.max(slowest, performance.now() - from);
        over = await Promise.race([
          done.then(() => true),
          new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 50)),
        ]);
      }
      assert.equal((await done).output, MEGABYTES * 1024);
      assert.ok(slowest < 5_000, `another endpoint had to wait ${Math.round(slowest)} ms`);
      const worker = (await done).workerId ?? '';
      await waitFor(
        'the last line is there',
        async () =>
          (
            await fixture.client.call(
              'GET',
              `/v2/serverless/${endpoint}/workers/${worker}/logs?tail=3&follow=false`,
            )
          ).text.includes('that was all'),
        60_000,
      );
      await fixture.remove(endpoint);
    });

    test('one that ignores SIGTERM is killed when it is idle, and at once when its endpoint is removed', {
      timeout: 60_000,
    }, async () => {
      const deaf = queueWorkerSource('async (n) => n').replace(
        /process\.on\('SIGTERM', \(\) => \{[^}]*\}\)/,
        "process.on('SIGTERM', () => undefined)",
      );
      const endpoint = await fixture.deploy('deaf', deaf, {
        scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
        workers: { min: 0, max: 1, idleTimeout: 1 },
      });
      assert.equal((await fixture.runSync(endpoint, 1)).output, 1);
      await waitFor(
        'it is gone',
        async () => (await fixture.engine.instancesOf(endpoint)).size === 0,
        30_000,
      );
      assert.equal((await fixture.runSync(endpoint, 2)).output, 2);
      const from = performance.now();
      await fixture.remove(endpoint);
      assert.ok(performance.now() - from < 5_000);
    });

    test('one that forks children into sessions of their own: they end with it', async () => {
      const before =
        "import { spawn } from 'node:child_process';\nfor (let n = 0; n < 3; n += 1) " +
        "spawn(process.execPath, ['-e', \"process.on('SIGTERM', () => undefined); setInterval(() => " +
        "undefined, 1000)\"], { detached: true, stdio: 'ignore' }).unref();";
      const endpoint = await fixture.deploy('parent', queueWorkerSource('async (n) => n', before), {
        scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
        workers: { min: 0, max: 1, idleTimeout: 1 },
      });
      assert.equal((await fixture.runSync(endpoint, 1)).output, 1);
      await waitFor('all of it is gone', async () => (await fixture.engine.instancesOf(endpoint)).size === 0);
      assert.equal((await fixture.runSync(endpoint, 2)).output, 2);
      await fixture.remove(endpoint);
    });
  });
}
