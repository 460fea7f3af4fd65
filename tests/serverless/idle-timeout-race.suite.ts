import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, test } from 'node:test';
import type { EngineFixture } from '../../packages/testing/src/engine-fixture.ts';
import { loadBalancedWorkerSource, queueWorkerSource } from '../../packages/testing/src/worker-sources.ts';
import { repeats } from '../../packages/testing/src/test-tier.ts';
import { serverlessFixture } from '../../packages/testing/src/serverless-fixture.ts';

const IDLE_SECONDS = 1;
const ROUNDS = repeats({ usually: 4, long: 20 });
const IN_A_ROUND = 25;
const EVERY_MS = 10;
/**
 * A worker goes with the first look of the fleet after its time, which may be half a second later: the rounds
 * begin all over that time.
 */
const RACE_WINDOW_MS = 600;

/** Requests, one every 10 ms, that begin when the worker is about to go, goes, or has gone. */
async function requestAroundIdleTimeout(ask: (n: number) => Promise<number>): Promise<void> {
  assert.equal(await ask(-1), -1);
  for (let round = 0; round < ROUNDS; round += 1) {
    await pause(IDLE_SECONDS * 1000 + (round * RACE_WINDOW_MS) / ROUNDS);
    const answers: Promise<number>[] = [];
    const from = round * IN_A_ROUND;
    for (let n = from; n < from + IN_A_ROUND; n += 1) {
      answers.push(ask(n));
      await pause(EVERY_MS);
    }
    assert.deepEqual(
      await Promise.all(answers),
      Array.from({ length: IN_A_ROUND }, (_, n) => from + n),
    );
  }
}

export function idleTimeoutRaceSuite(name: string, open: () => Promise<EngineFixture>): void {
  describe(`requests around the idle timeout on the ${name} engine`, { concurrency: true }, () => {
    const fixture = serverlessFixture(open);
    const workers = { min: 0, max: 2, idleTimeout: IDLE_SECONDS };

    test('none fails on a queue endpoint', { timeout: 150_000 }, async () => {
      const endpoint = await fixture.deploy('edge', queueWorkerSource('async (n) => n'), {
        scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
        workers,
      });
      await requestAroundIdleTimeout(async (n) => (await fixture.runSync(endpoint, n)).output as number);
    });

    test('none is lost on a load balancing endpoint', { timeout: 150_000 }, async () => {
      const code = loadBalancedWorkerSource(
        "(request, response) => response.end(request.url.split('/').at(-1))",
      );
      const endpoint = await fixture.deploy('balanced-edge', code, {
        type: 'LOAD_BALANCER',
        scaling: { type: 'REQUEST_COUNT', requestCount: 100 },
        workers,
      });
      await requestAroundIdleTimeout(async (n) => {
        const { status, text } = await fixture.client.call('GET', `/v2/${endpoint}/number/${n}`);
        assert.equal(status, 200, text);
        return Number(text);
      });
    });
  });
}
