import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { test } from 'node:test';
import { seededRandom } from '../packages/testing/src/safety/seeded-random.ts';
import { startRecordingChannelWorker } from '../packages/testing/src/safety/recording-channel-worker.ts';
import { closeAfterTest } from '../packages/testing/src/safety/close-after-test.ts';
import { SimulatedClients } from '../packages/testing/src/safety/simulated-clients.ts';
import { createSafetyEndpoint } from '../packages/testing/src/safety/safety-endpoint.ts';
import type { HistoryEvent } from '../packages/testing/src/safety/job-history.ts';
import { startRecordingPublicWorker } from '../packages/testing/src/safety/recording-public-worker.ts';
import { KillableServers } from '../packages/testing/src/safety/killable-servers.ts';
import { assertHistorySafe } from '../packages/testing/src/safety/assert-history-safe.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import { repeats } from '../packages/testing/src/test-tier.ts';
import type { DatabaseKind } from '../packages/testing/src/test-database.ts';
import { seed } from '../packages/testing/src/property-testing.ts';
import { ROOT_KEY } from '../packages/testing/src/server-process.ts';

/** A server is killed this long after it is up, in milliseconds. */
const LIFE = { least: 0, most: 500 };
/** A job that was taken for a worker and never reached it is given up after 15 s of evidence. */
const SETTLES_WITHIN_MS = 60_000;
const RUNS: [DatabaseKind, number][] = [
  ['sqlite', repeats({ usually: 6, long: 50 })],
  ['postgres', repeats({ usually: 3, long: 10 })],
];

for (const [kind, kills] of RUNS) {
  test(`${kills} kills of the server under load lose nothing and change no end, on ${kind}`, {
    timeout: 240_000,
  }, async (t) => {
    const history: HistoryEvent[] = [];
    const chance = seededRandom(seed, `kills ${kind}`);
    const closing = closeAfterTest(t);
    const database = await createTestDatabase(kind);
    closing(() => database.drop());
    const servers = new KillableServers(database, [database.data], chance, history);
    closing(() => servers.stop());
    const endpointId = await createSafetyEndpoint((await servers.start(0)).client(), 1);
    const worker = {
      server: servers.url,
      endpointId,
      key: ROOT_KEY,
      pingEvery: 1_000,
      report: (event: HistoryEvent) => void history.push(event),
    };
    const workers = [
      startRecordingPublicWorker({ ...worker, workerId: 'single', concurrency: 1 }),
      startRecordingPublicWorker({ ...worker, workerId: 'batch', concurrency: 5 }),
      startRecordingChannelWorker({ ...worker, workerId: 'channel', concurrency: 5 }),
    ];
    const stopWorkers = (): Promise<unknown> => Promise.all(workers.map((each) => each.stop()));
    closing(stopWorkers);
    const clients = new SimulatedClients({
      server: servers.url,
      endpointId,
      key: ROOT_KEY,
      history,
      random: seededRandom(seed, `clients ${kind}`),
      jobDurationMs: { least: 0, most: 100 },
      disruptions: { cancel: 4, retry: 3, purge: 0 },
      streams: true,
    });

    let over = false;
    const working = clients.runClients(10, { least: 0, most: 100 }, () => over);
    while (servers.kills < kills) {
      await pause(chance.between(LIFE.least, LIFE.most));
      // Most lives see some work; a few end before anything was done.
      const enough = clients.jobs + (chance.chance(0.8) ? chance.between(1, 25) : 0);
      while (clients.jobs < enough) await pause(1);
      await servers.kill(0);
      await servers.start(0);
    }
    over = true;
    await working;
    await clients.waitForAllEnds(SETTLES_WITHIN_MS);
    // What a restart finds on disk is what was answered before.
    await servers.kill(0);
    await servers.start(0);
    await clients.waitForAllEnds(SETTLES_WITHIN_MS);
    const counts = await clients.health();
    await stopWorkers();
    await servers.stop();

    process.stdout.write(
      `${kind}: ${servers.kills} kills, ${clients.jobs} jobs: ${JSON.stringify(clients.tally())}\n`,
    );
    assertHistorySafe(history);
    assert.deepEqual([counts.inQueue, counts.inProgress], [0, 0]);
    assert.deepEqual(servers.defects(), []);
  });
}
