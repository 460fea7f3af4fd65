// Workers in Python, with Berth's SDK and with the public one, accelerated: killed, frozen and cut off, under
// a server that is killed too. BERTH_TEST_SAFETY_SECONDS makes the faults last longer.
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { startFaultyTcpProxy } from '../packages/testing/src/faulty-tcp-proxy.ts';
import { seed } from '../packages/testing/src/property-testing.ts';
import { acceleratedPythonSdk, berthPythonSdk } from '../packages/testing/src/python-sdks.ts';
import { acceleratedClock } from '../packages/testing/src/safety/accelerated-clock.ts';
import { assertHistorySafe } from '../packages/testing/src/safety/assert-history-safe.ts';
import { closeAfterTest } from '../packages/testing/src/safety/close-after-test.ts';
import { startInProcessServer } from '../packages/testing/src/safety/in-process-server.ts';
import type { HistoryEvent } from '../packages/testing/src/safety/job-history.ts';
import { KillableServers } from '../packages/testing/src/safety/killable-servers.ts';
import { KillableWorker } from '../packages/testing/src/safety/killable-worker.ts';
import type { KillableWorkerOptions } from '../packages/testing/src/safety/killable-worker.ts';
import { createSafetyEndpoint } from '../packages/testing/src/safety/safety-endpoint.ts';
import { seededRandom } from '../packages/testing/src/safety/seeded-random.ts';
import { SimulatedClients } from '../packages/testing/src/safety/simulated-clients.ts';
import { ROOT_KEY } from '../packages/testing/src/server-process.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import { repeats } from '../packages/testing/src/test-tier.ts';

const FAULT_MS = Number(process.env['BERTH_TEST_SAFETY_SECONDS'] ?? repeats({ usually: 6, long: 12 })) * 1000;
/** Half a minute of silence takes 1.5 s. */
const RATE = 20;
const BETWEEN_FAULTS = { least: 100, most: 800 };
const FROZEN_MS = { least: 100, most: 4_000 };
const BETWEEN_KILLS = { least: 300, most: 2_500 };
const SETTLES_WITHIN_MS = 90_000;
const TIMEOUT_MS = FAULT_MS + 150_000;

const sdk = berthPythonSdk();
const accelerated = acceleratedPythonSdk();
const skip = typeof sdk === 'string' && sdk;

test('Python workers that are killed, frozen and cut off lose nothing, and no result counts twice', {
  timeout: TIMEOUT_MS,
  skip,
}, async (t) => {
  const history: HistoryEvent[] = [];
  const chance = seededRandom(seed, 'workers');
  const closing = closeAfterTest(t);
  const database = await createTestDatabase('sqlite');
  closing(() => database.drop());
  const site = await startInProcessServer({
    database,
    clock: acceleratedClock(RATE),
    endpoint: { maxRetries: 5 },
  });
  closing(() => site.close());
  const proxy = await startFaultyTcpProxy(() => site.url, seededRandom(seed, 'cuts'));
  closing(() => proxy.close());
  const workers = startWorkers(t, {
    server: proxy.url,
    endpointId: site.endpoint.id,
    key: ROOT_KEY,
    folder: database.data,
    history,
  });
  const clients = clientsOf(() => site.url, site.endpoint.id, history);

  let over = false;
  const working = clients.runClients(4, { least: 50, most: 250 }, () => over);
  // The first job shows that a worker is up: Python starts slowly.
  while (!history.some((event) => event.kind === 'observation' && event.status === 'COMPLETED'))
    await pause(20);
  const frozen: Promise<void>[] = [];
  let faults = 0;
  for (const until = Date.now() + FAULT_MS; Date.now() < until; faults += 1) {
    await pause(chance.between(BETWEEN_FAULTS.least, BETWEEN_FAULTS.most));
    if (chance.chance(0.3)) proxy.startFaults();
    else proxy.stopFaults();
    const worker = chance.pick(workers);
    if (worker === undefined) continue;
    if (chance.chance(0.3)) {
      await worker.kill();
      worker.start(chance.chance(0.5));
    } else if (!worker.frozen) {
      worker.suspend();
      frozen.push(pause(chance.between(FROZEN_MS.least, FROZEN_MS.most)).then(() => worker.resume()));
    }
  }
  over = true;
  proxy.stopFaults();
  await Promise.all([working, ...frozen]);
  await clients.waitForAllEnds(SETTLES_WITHIN_MS);
  const counts = await clients.health();
  await Promise.all(workers.map((worker) => worker.kill()));
  history.push(...workers.flatMap((worker) => worker.recordedEvents()));

  process.stdout.write(
    `${faults} faults, ${proxy.faultCount()} cuts, ${clients.jobs} jobs: ${JSON.stringify(clients.tally())}\n`,
  );
  assertHistorySafe(history);
  assert.deepEqual([counts.inQueue, counts.inProgress], [0, 0]);
});

test('kills of the server under Python workers lose nothing and change no end', {
  timeout: TIMEOUT_MS,
  skip,
}, async (t) => {
  const history: HistoryEvent[] = [];
  const chance = seededRandom(seed, 'kills');
  const closing = closeAfterTest(t);
  const database = await createTestDatabase('sqlite');
  closing(() => database.drop());
  const servers = new KillableServers(database, [database.data], chance, history);
  closing(() => servers.stop());
  const endpointId = await createSafetyEndpoint((await servers.start(0)).client(), 2);
  // A server that comes back has another port; the workers know one address.
  const proxy = await startFaultyTcpProxy(servers.url, seededRandom(seed, 'cuts of kills'));
  closing(() => proxy.close());
  const workers = startWorkers(t, {
    server: proxy.url,
    endpointId,
    key: ROOT_KEY,
    folder: database.data,
    history,
  });
  const clients = clientsOf(servers.url, endpointId, history);

  let over = false;
  const working = clients.runClients(4, { least: 20, most: 150 }, () => over);
  while (!history.some((event) => event.kind === 'observation' && event.status === 'COMPLETED'))
    await pause(20);
  for (const until = Date.now() + FAULT_MS; Date.now() < until; ) {
    await pause(chance.between(BETWEEN_KILLS.least, BETWEEN_KILLS.most));
    if (chance.chance(0.6)) proxy.startFaults();
    else proxy.stopFaults();
    await servers.kill(0);
    await servers.start(0);
  }
  over = true;
  proxy.stopFaults();
  await working;
  await clients.waitForAllEnds(SETTLES_WITHIN_MS);
  const counts = await clients.health();
  await Promise.all(workers.map((worker) => worker.kill()));
  history.push(...workers.flatMap((worker) => worker.recordedEvents()));
  await servers.stop();

  process.stdout.write(
    `${servers.kills} kills, ${proxy.faultCount()} cuts, ${clients.jobs} jobs: ${JSON.stringify(clients.tally())}\n`,
  );
  assertHistorySafe(history);
  assert.deepEqual([counts.inQueue, counts.inProgress], [0, 0]);
  assert.deepEqual(servers.defects(), []);
});

function startWorkers(
  t: TestContext,
  options: Omit<KillableWorkerOptions, 'protocol' | 'concurrency'>,
): KillableWorker[] {
  if (typeof sdk === 'string') throw new Error(sdk);
  const workers = [
    new KillableWorker('fast', { ...options, python: sdk, protocol: 'channel', concurrency: 1 }),
    new KillableWorker('wide', { ...options, python: sdk, protocol: 'channel', concurrency: 4 }),
    new KillableWorker('public', { ...options, python: sdk, protocol: 'public', concurrency: 1 }),
  ];
  if (typeof accelerated === 'string') t.diagnostic(`without an accelerated worker: ${accelerated}`);
  else
    workers.push(
      new KillableWorker('sdk', { ...options, python: accelerated, protocol: 'channel', concurrency: 1 }),
    );
  t.after(() => Promise.all(workers.map((worker) => worker.kill())));
  return workers;
}

/** Streams are not looked at: the handlers are plain functions. */
function clientsOf(server: () => string, endpointId: string, history: HistoryEvent[]): SimulatedClients {
  return new SimulatedClients({
    server,
    endpointId,
    key: ROOT_KEY,
    history,
    random: seededRandom(seed, `clients ${endpointId}`),
    jobDurationMs: { least: 0, most: 300 },
    disruptions: { cancel: 5, retry: 5, purge: 0 },
    streams: false,
  });
}
