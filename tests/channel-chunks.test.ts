import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, test } from 'node:test';
import { Shift } from '../packages/worker/src/shift.ts';
import { QUICK_PACE } from '../packages/worker/src/test-server/quick-pace.ts';
import { chanceOf } from './safety/chance.ts';
import { cleanup } from './safety/cleanup.ts';
import { createEndpoint } from './safety/endpoint.ts';
import { Servers } from './safety/servers.ts';
import { clientOf } from './support/client.ts';
import { cutWires } from './support/cut-wires.ts';
import { freshDatabase } from './support/databases.ts';
import type { DatabaseKind } from './support/databases.ts';
import { endpointOf } from './support/jobs.ts';
import type { TestEndpoint } from './support/jobs.ts';
import { seed } from './support/seed.ts';
import { ROOT_KEY } from './support/server.ts';

const JOBS = 4;
const KILLS = 3;
/** One in so many is larger than the largest chunk that is stored, and is cut. */
const ONE_IN = 500;
const LARGE = 'ü'.repeat(700_000);

/** With `auto` most of a job goes over HTTP, one post for each chunk, after its channel was not offered for once: fewer are enough. */
const STORIES: [kind: DatabaseKind, servers: number, channel: 'fast' | 'auto', chunks: number][] = [
  ['sqlite', 1, 'fast', 2_000],
  ['postgres', 2, 'fast', 2_000],
  ['sqlite', 1, 'auto', 500],
  ['postgres', 2, 'auto', 500],
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
async function streamOf(jobs: TestEndpoint, id: string): Promise<unknown[]> {
  const all: unknown[] = [];
  for (;;) {
    const { body } = await jobs.call<{ output: unknown }[]>('GET', `stream/${id}`);
    if (body.length === 0) return all;
    all.push(...body.map(({ output }) => output));
  }
}

describe(`chunks of the worker SDK (seed ${seed})`, () => {
  for (const [kind, count, channel, chunks] of STORIES) {
    const name = `${kind}, ${count === 1 ? 'one server' : `${count} servers`}, ${channel}`;
    test(`are stored once and in order while connections are cut and servers killed: ${name}`, {
      timeout: 240_000,
    }, async (t) => {
      const closing = cleanup(t);
      const chance = chanceOf(seed, name);
      const database = await freshDatabase(kind);
      closing(() => database.drop());
      const second = mkdtempSync(join(tmpdir(), 'berth-test-'));
      closing(async () => rmSync(second, { recursive: true, force: true }));
      const servers = new Servers(
        database,
        [database.data, second].slice(0, count),
        chanceOf(seed, `${name} addresses`),
        [],
      );
      closing(() => servers.stop());
      const endpointId = await createEndpoint((await servers.start(0)).client(), 0);
      for (let index = 1; index < count; index += 1) await servers.start(index);
      const wires = await cutWires(servers.address, chanceOf(seed, `${name} wires`));
      closing(() => wires.close());

      const startedAt = Date.now();
      const begun: string[] = [];
      let yielded = 0;
      const go = Promise.withResolvers<void>();
      const shift = new Shift(
        async function* (job) {
          begun.push(job.id);
          const own = chanceOf(seed, `${name} ${String(job.input)}`);
          await go.promise;
          for (let number = 0; number < chunks; number += 1) {
            if (number % 2 === 0) await pause(own.between(0, 10));
            yielded += 1;
            yield number % ONE_IN === ONE_IN - 1 ? LARGE : number;
          }
        },
        { channel, concurrency: JOBS, env: environment(wires.url, endpointId) },
        { pace: QUICK_PACE, pulse: false, write: () => undefined },
      );
      closing(async () => {
        shift.abort();
        await shift.done;
      });

      const jobs = (): TestEndpoint =>
        endpointOf(clientOf(servers.address(), ROOT_KEY), endpointId, ROOT_KEY);
      const ids: string[] = [];
      for (let number = 0; number < JOBS; number += 1) ids.push(await jobs().run(number));
      while (begun.length < JOBS) await pause(5);
      wires.cut();
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
        const ended = await jobs().ended(id);
        assert.deepEqual([ended.status, ended.retries], ['COMPLETED', undefined], JSON.stringify(ended));
      }
      wires.mend();
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
        `${name}: ${wires.cuts()} cuts, ${servers.kills} kills, ${yielded} chunks in ${Math.round((Date.now() - startedAt) / 1_000)} s\n`,
      );
      assert.ok(wires.cuts() > 0);
      assert.deepEqual(servers.defects(), []);
    });
  }
});
