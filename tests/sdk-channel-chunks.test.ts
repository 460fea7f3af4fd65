import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, test } from 'node:test';
import { WorkerRuntime } from '../packages/worker/src/worker-runtime.ts';
import { SHORT_TIMINGS } from '../packages/testing/src/worker-sdk/short-timings.ts';
import { seededRandom } from '../packages/testing/src/safety/seeded-random.ts';
import { closeAfterTest } from '../packages/testing/src/safety/close-after-test.ts';
import { createSafetyEndpoint } from '../packages/testing/src/safety/safety-endpoint.ts';
import { KillableServers } from '../packages/testing/src/safety/killable-servers.ts';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import { startFaultyTcpProxy } from '../packages/testing/src/faulty-tcp-proxy.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import { repeats } from '../packages/testing/src/test-tier.ts';
import type { DatabaseKind } from '../packages/testing/src/test-database.ts';
import { queueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { seed } from '../packages/testing/src/property-testing.ts';
import { ROOT_KEY } from '../packages/testing/src/server-process.ts';

const JOBS = 4;
const KILLS = repeats({ usually: 2, long: 3 });
/** Chunks of a job in the stories that stream the most. */
const CHUNKS = repeats({ usually: 250, long: 2_000 });
/** One in so many is larger than the largest chunk that is stored, and is cut. */
const ONE_IN = repeats({ usually: 125, long: 500 });
const LARGE = 'ü'.repeat(700_000);

/**
 * With `auto` most of a job goes over HTTP, one post for each chunk, after its channel was not offered for
 * once: fewer are enough.
 */
const STORIES: [kind: DatabaseKind, servers: number, channel: 'fast' | 'auto', chunks: number][] = [
  ['sqlite', 1, 'fast', CHUNKS],
  ['postgres', 2, 'fast', CHUNKS],
  ['sqlite', 1, 'auto', ONE_IN],
  ['postgres', 2, 'auto', ONE_IN],
];

/** What the TypeScript worker is told by the platform, at this address. */
function environment(url: string, endpointId: string): Record<string, string> {
  const base = `${url}/v2/${endpointId}`;
  return {
    RUNPOD_POD_ID: 'streamer',
    RUNPOD_AI_API_KEY: ROOT_KEY,
    RUNPOD_PING_INTERVAL: '1000',
    RUNPOD_WEBHOOK_GET_JOB: `${base}/job-take/$ID?gpu=none`,
    RUNPOD_WEBHOOK_POST_OUTPUT: `${base}/job-done/$RUNPOD_POD_ID/$ID?gpu=none`,
    RUNPOD_WEBHOOK_POST_STREAM: `${base}/job-stream/$RUNPOD_POD_ID/$ID?gpu=none`,
    RUNPOD_WEBHOOK_PING: `${base}/ping/$RUNPOD_POD_ID?gpu=none`,
  };
}

/** All that a job streamed, a page at a time. */
async function streamOf(jobs: QueueEndpointClient, id: string): Promise<unknown[]> {
  const all: unknown[] = [];
  for (;;) {
    const { body } = await jobs.call<{ output: unknown }[]>('GET', `stream/${id}`);
    if (body.length === 0) return all;
    all.push(...body.map(({ output }) => output));
  }
}

describe(`chunks of the worker SDK (seed ${seed})`, { concurrency: 2 }, () => {
  for (const [kind, count, channel, chunks] of STORIES) {
    const name = `${kind}, ${count === 1 ? 'one server' : `${count} servers`}, ${channel}`;
    test(`are stored once and in order while connections are cut and servers killed: ${name}`, {
      timeout: 240_000,
    }, async (t) => {
      const closing = closeAfterTest(t);
      const chance = seededRandom(seed, name);
      const database = await createTestDatabase(kind);
      closing(() => database.drop());
      const second = mkdtempSync(join(tmpdir(), 'berth-test-'));
      closing(async () => rmSync(second, { recursive: true, force: true }));
      const servers = new KillableServers(
        database,
        [database.data, second].slice(0, count),
        seededRandom(seed, `${name} addresses`),
        [],
      );
      closing(() => servers.stop());
      const endpointId = await createSafetyEndpoint((await servers.start(0)).client(), 0);
      for (let index = 1; index < count; index += 1) await servers.start(index);
      const wires = await startFaultyTcpProxy(servers.url, seededRandom(seed, `${name} wires`));
      closing(() => wires.close());

      const startedAt = Date.now();
      const begun: string[] = [];
      let yielded = 0;
      const go = Promise.withResolvers<void>();
      const shift = new WorkerRuntime(
        async function* (job) {
          begun.push(job.id);
          const own = seededRandom(seed, `${name} ${String(job.input)}`);
          await go.promise;
          for (let number = 0; number < chunks; number += 1) {
            if (number % 2 === 0) await pause(own.between(0, 10));
            yielded += 1;
            yield number % ONE_IN === ONE_IN - 1 ? LARGE : number;
          }
        },
        { channel, concurrency: JOBS, env: environment(wires.url, endpointId) },
        { timings: SHORT_TIMINGS, pingThread: false, writeLogLine: () => undefined },
      );
      closing(async () => {
        shift.abort();
        await shift.done;
      });

      const jobs = (): QueueEndpointClient =>
        queueEndpointClient(createApiClient(servers.url(), ROOT_KEY), endpointId, ROOT_KEY);
      const ids: string[] = [];
      for (let number = 0; number < JOBS; number += 1) ids.push(await jobs().run(number));
      while (begun.length < JOBS) await pause(5);
      wires.startFaults();
      go.resolve();
      for (let kill = 1; kill <= KILLS; kill += 1) {
        const at =
          chance.between(1, (JOBS * chunks) / (KILLS + 1)) + ((kill - 1) * JOBS * chunks) / (KILLS + 1);
        while (yielded < at) await pause(5);
        const index = chance.between(0, count - 1);
        await servers.kill(index);
        await servers.start(index);
      }
      for (const id of ids) {
        const ended = await jobs().waitForEnd(id);
        assert.deepEqual([ended.status, ended.retries], ['COMPLETED', undefined], JSON.stringify(ended));
      }
      wires.stopFaults();
      assert.deepEqual(begun.toSorted(), ids.toSorted(), 'each job ran once');
      for (const id of ids) {
        const streamed = await streamOf(jobs(), id);
        const numbers = streamed.filter((output) => typeof output === 'number');
        assert.deepEqual(
          numbers,
          Array.from({ length: chunks }, (_, number) => number).filter(
            (number) => number % ONE_IN !== ONE_IN - 1,
          ),
        );
        assert.ok(
          streamed.filter((output) => typeof output === 'string').join('') === LARGE.repeat(chunks / ONE_IN),
          'large chunks are whole',
        );
      }
      process.stdout.write(
        `${name}: ${wires.faultCount()} cuts, ${servers.kills} kills, ${yielded} chunks in ` +
          `${Math.round((Date.now() - startedAt) / 1_000)} s\n`,
      );
      assert.ok(wires.faultCount() > 0);
      assert.deepEqual(servers.defects(), []);
    });
  }
});
