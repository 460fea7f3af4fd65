import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { test } from 'node:test';
import { chanceOf } from './safety/chance.ts';
import { startChannelWorker } from './safety/channel-worker.ts';
import { cleanup } from './safety/cleanup.ts';
import { Clients } from './safety/clients.ts';
import { createEndpoint } from './safety/endpoint.ts';
import type { Event } from './safety/history.ts';
import { startPublicWorker } from './safety/public-worker.ts';
import { Servers } from './safety/servers.ts';
import { assertSafe } from './safety/verdict.ts';
import { freshDatabase } from './support/databases.ts';
import type { DatabaseKind } from './support/databases.ts';
import { seed } from './support/seed.ts';
import { ROOT_KEY } from './support/server.ts';

/** A server is killed this long after it is up, in milliseconds. */
const LIFE = { least: 0, most: 500 };
/** A job that was taken for a worker and never reached it is given up after 15 s of evidence. */
const SETTLES_WITHIN_MS = 60_000;
const RUNS: [DatabaseKind, number][] = [
  ['sqlite', 50],
  ['postgres', 10],
];

for (const [kind, kills] of RUNS) {
  test(`${kills} kills of the server under load lose nothing and change no end, on ${kind}`, {
    timeout: 240_000,
  }, async (t) => {
    const history: Event[] = [];
    const chance = chanceOf(seed, `kills ${kind}`);
    const closing = cleanup(t);
    const database = await freshDatabase(kind);
    closing(() => database.drop());
    const servers = new Servers(database, [database.data], chance, history);
    closing(() => servers.stop());
    const endpointId = await createEndpoint((await servers.start(0)).client(), 1);
    const worker = {
      server: servers.address,
      endpointId,
      key: ROOT_KEY,
      pingEvery: 1_000,
      report: (event: Event) => void history.push(event),
    };
    const workers = [
      startPublicWorker({ ...worker, workerId: 'single', concurrency: 1 }),
      startPublicWorker({ ...worker, workerId: 'batch', concurrency: 5 }),
      startChannelWorker({ ...worker, workerId: 'channel', concurrency: 5 }),
    ];
    const stopWorkers = (): Promise<unknown> => Promise.all(workers.map((each) => each.stop()));
    closing(stopWorkers);
    const clients = new Clients({
      server: servers.address,
      endpointId,
      key: ROOT_KEY,
      history,
      chance: chanceOf(seed, `clients ${kind}`),
      work: { least: 0, most: 100 },
      mischief: { cancel: 4, retry: 3, purge: 0 },
      streams: true,
    });

    let over = false;
    const working = clients.work(10, { least: 0, most: 100 }, () => over);
    while (servers.kills < kills) {
      await pause(chance.between(LIFE.least, LIFE.most));
      // Most lives see some work; a few end before anything was done.
      const enough = clients.jobs + (chance.happens(0.8) ? chance.between(1, 25) : 0);
      while (clients.jobs < enough) await pause(1);
      await servers.kill(0);
      await servers.start(0);
    }
    over = true;
    await working;
    await clients.settle(SETTLES_WITHIN_MS);
    // What a restart finds on disk is what was answered before.
    await servers.kill(0);
    await servers.start(0);
    await clients.settle(SETTLES_WITHIN_MS);
    const counts = await clients.health();
    await stopWorkers();
    await servers.stop();

    process.stdout.write(
      `${kind}: ${servers.kills} kills, ${clients.jobs} jobs: ${JSON.stringify(clients.tally())}\n`,
    );
    assertSafe(history);
    assert.deepEqual([counts.inQueue, counts.inProgress], [0, 0]);
    assert.deepEqual(servers.defects(), []);
  });
}
