import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { seededRandom } from '../packages/testing/src/safety/seeded-random.ts';
import { startRecordingChannelWorker } from '../packages/testing/src/safety/recording-channel-worker.ts';
import { closeAfterTest } from '../packages/testing/src/safety/close-after-test.ts';
import { SimulatedClients } from '../packages/testing/src/safety/simulated-clients.ts';
import { createSafetyEndpoint } from '../packages/testing/src/safety/safety-endpoint.ts';
import { acceleratedClock } from '../packages/testing/src/safety/accelerated-clock.ts';
import { monotonicMs } from '../packages/testing/src/safety/job-history.ts';
import type { HistoryEvent } from '../packages/testing/src/safety/job-history.ts';
import { startRecordingPublicWorker } from '../packages/testing/src/safety/recording-public-worker.ts';
import { KillableServers } from '../packages/testing/src/safety/killable-servers.ts';
import { startInProcessServer } from '../packages/testing/src/safety/in-process-server.ts';
import { assertHistorySafe } from '../packages/testing/src/safety/assert-history-safe.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import { repeats } from '../packages/testing/src/test-tier.ts';
import { seed } from '../packages/testing/src/property-testing.ts';
import { ROOT_KEY } from '../packages/testing/src/server-process.ts';

const KILLS = repeats({ usually: 4, long: 12 });
/** How many servers there are. */
const COUNTS = repeats<readonly number[]>({ usually: [3], long: [2, 3] });
/** Milliseconds that all are up, and that one or two are down. */
const ALL_UP = { least: 100, most: 1_500 };
const ONE_DOWN = { least: 0, most: 1_500 };
/** A worker stays on one connection for about this long. */
const STAYS = { least: 500, most: 4_000 };
/**
 * A job whose server died before it could hand it over is noticed after a look (10 s) and some doubt (15 s).
 */
const SETTLES_WITHIN_MS = 70_000;

for (const count of COUNTS)
  test(
    `${count} servers share the work; ${KILLS} kills, now of one, now of another, lose nothing and change no end`,
    {
      timeout: 240_000,
    },
    (t) => killServers(t, count),
  );

async function killServers(t: TestContext, count: number): Promise<void> {
  const closing = closeAfterTest(t);
  const history: HistoryEvent[] = [];
  const chance = seededRandom(seed, 'kills');
  const database = await createTestDatabase('postgres');
  closing(() => database.drop());
  const others = Array.from({ length: count - 1 }, () => mkdtempSync(join(tmpdir(), 'berth-test-')));
  closing(async () => others.forEach((folder) => rmSync(folder, { recursive: true, force: true })));
  const servers = new KillableServers(
    database,
    [database.data, ...others],
    seededRandom(seed, 'addresses'),
    history,
  );
  closing(() => servers.stop());
  const endpointId = await createSafetyEndpoint((await servers.start(0)).client(), 1);
  for (const [index] of others.entries()) await servers.start(index + 1);
  const worker = {
    server: servers.url,
    endpointId,
    key: ROOT_KEY,
    pingEvery: 1_000,
    report: (event: HistoryEvent) => void history.push(event),
  };
  const moving = seededRandom(seed, 'moving');
  const movesAfter = (): number => moving.between(STAYS.least, STAYS.most);
  const workers = [
    startRecordingPublicWorker({ ...worker, workerId: 'single', concurrency: 1 }),
    startRecordingPublicWorker({ ...worker, workerId: 'batch', concurrency: 5 }),
    startRecordingChannelWorker({ ...worker, workerId: 'channel', concurrency: 5, numbersChunks: false }),
    startRecordingChannelWorker({ ...worker, workerId: 'mover', concurrency: 3, reconnectAfter: movesAfter }),
  ];
  const stopWorkers = (): Promise<unknown> => Promise.all(workers.map((each) => each.stop()));
  closing(stopWorkers);
  const clients = new SimulatedClients({
    server: servers.url,
    endpointId,
    key: ROOT_KEY,
    history,
    random: seededRandom(seed, 'clients'),
    jobDurationMs: { least: 0, most: 150 },
    disruptions: { cancel: 4, retry: 3, purge: 0 },
    streams: true,
  });

  let over = false;
  const working = clients.runClients(8, { least: 20, most: 150 }, () => over);
  while (servers.kills < KILLS) {
    await pause(chance.between(ALL_UP.least, ALL_UP.most));
    const first = chance.between(0, count - 1);
    // Sometimes a second one ends while the first is down; one is always up.
    const down = count > 2 && chance.chance(0.5) ? [first, (first + 1) % count] : [first];
    for (const index of down) {
      await servers.kill(index);
      await pause(chance.between(ONE_DOWN.least, ONE_DOWN.most));
    }
    for (const index of down) await servers.start(index);
  }
  over = true;
  await working;
  await clients.waitForAllEnds(SETTLES_WITHIN_MS);
  const counts = await clients.health();
  await stopWorkers();
  await servers.stop();

  process.stdout.write(
    `${count} servers: ${servers.kills} kills, ${clients.jobs} jobs: ${JSON.stringify(clients.tally())}\n`,
  );
  assertHistorySafe(history);
  assert.deepEqual([counts.inQueue, counts.inProgress], [0, 0]);
  assert.deepEqual(servers.defects(), []);
}

test('a worker that moves from one server to the other keeps its job', { timeout: 60_000 }, async (t) => {
  const closing = closeAfterTest(t);
  const history: HistoryEvent[] = [];
  const database = await createTestDatabase('postgres');
  closing(() => database.drop());
  const clock = acceleratedClock(20);
  const sites = [
    await startInProcessServer({ database, clock, endpoint: { maxRetries: 0 } }),
    await startInProcessServer({ database, clock, endpoint: { maxRetries: 0 } }),
  ];
  closing(() => Promise.all(sites.map((site) => site.close())));
  let connections = 0;
  const address = (): string => sites[Math.min(connections++, 1)]?.url ?? '';
  let moved = false;
  const worker = startRecordingChannelWorker({
    server: address,
    endpointId: 'safety',
    workerId: 'mover',
    key: ROOT_KEY,
    concurrency: 1,
    pingEvery: 300,
    report: (event) => void history.push(event),
    reconnectAfter: () => {
      const stays = moved ? 60_000 : 1_000;
      moved = true;
      return stays;
    },
  });
  closing(() => worker.stop());
  // The server that it left gives it 10 s to come back.
  const clients = new SimulatedClients({
    server: () => sites[0]?.url ?? '',
    endpointId: 'safety',
    key: ROOT_KEY,
    history,
    random: seededRandom(seed, 'moving'),
    jobDurationMs: { least: 13_000, most: 13_000 },
    disruptions: { cancel: 0, retry: 0, purge: 0 },
    streams: false,
  });
  await clients.submit();
  await clients.waitForAllEnds(30_000);
  assert.equal(connections, 2);
  assertHistorySafe(history);
  assert.equal(history.filter(({ kind }) => kind === 'execution').length, 1);
});

for (const protocol of ['public', 'channel'] as const) {
  test(`a job that a killed server handed out is missed by the worker's new one, over the ${protocol} protocol`, {
    timeout: 60_000,
  }, async (t) => {
    const closing = closeAfterTest(t);
    const history: HistoryEvent[] = [];
    const database = await createTestDatabase('postgres');
    closing(() => database.drop());
    const clock = acceleratedClock(20);
    const lasting = await startInProcessServer({ database, clock });
    closing(() => lasting.close());
    const dying = await startInProcessServer({ database, clock });
    const clients = new SimulatedClients({
      server: () => lasting.url,
      endpointId: 'safety',
      key: ROOT_KEY,
      history,
      random: seededRandom(seed, protocol),
      jobDurationMs: { least: 10, most: 10 },
      disruptions: { cancel: 0, retry: 0, purge: 0 },
      streams: false,
    });
    const start = protocol === 'public' ? startRecordingPublicWorker : startRecordingChannelWorker;
    const worker = start({
      server: () => lasting.url,
      endpointId: 'safety',
      workerId: 'worker',
      key: ROOT_KEY,
      concurrency: 1,
      pingEvery: 300,
      report: (event) => void history.push(event),
    });
    closing(() => worker.stop());
    // The worker is there and known before the other server takes the next job for it, and ends without a
    // word.
    await clients.submit();
    await clients.waitForAllEnds(20_000);
    const taking = dying.queue.take('safety', 'worker', 1, 20_000, new AbortController().signal);
    await worker.stop();
    await clients.submit();
    assert.equal((await taking).length, 1);
    history.push({ kind: 'disturbance', what: 'the server that took the job ended', at: monotonicMs() });
    await dying.close();
    const again = start({
      server: () => lasting.url,
      endpointId: 'safety',
      workerId: 'worker',
      key: ROOT_KEY,
      concurrency: 1,
      pingEvery: 300,
      runName: 'again',
      report: (event) => void history.push(event),
    });
    closing(() => again.stop());
    await clients.waitForAllEnds(20_000);
    assertHistorySafe(history);
    assert.equal(clients.tally()['IN_PROGRESS'], undefined);
  });
}
