import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { test } from 'node:test';
import { seededRandom } from '../packages/testing/src/safety/seeded-random.ts';
import { closeAfterTest } from '../packages/testing/src/safety/close-after-test.ts';
import { SimulatedClients } from '../packages/testing/src/safety/simulated-clients.ts';
import { acceleratedClock } from '../packages/testing/src/safety/accelerated-clock.ts';
import type { HistoryEvent } from '../packages/testing/src/safety/job-history.ts';
import { startInProcessServer } from '../packages/testing/src/safety/in-process-server.ts';
import { assertHistorySafe } from '../packages/testing/src/safety/assert-history-safe.ts';
import { KillableWorker } from '../packages/testing/src/safety/killable-worker.ts';
import { DATABASES, createTestDatabase } from '../packages/testing/src/test-database.ts';
import { repeats } from '../packages/testing/src/test-tier.ts';
import { seed } from '../packages/testing/src/property-testing.ts';
import { ROOT_KEY } from '../packages/testing/src/server-process.ts';

// Streams are not looked at here. The public protocol names no attempt, so a worker that thaws beside a
// second attempt of its own at the same job mixes the chunks of both; its results stay one.

/** Half a minute of silence takes 1.5 s. */
const RATE = 20;
const FAULTS = repeats({ usually: 12, long: 60 });
/** Whether a freeze meets a job is chance; there are more rounds of faults until one has. */
const MOST_ROUNDS = 5;
const BETWEEN_FAULTS = { least: 50, most: 500 };
/** From a hiccup to far beyond the silence after which a worker is taken for dead. */
const FROZEN_MS = { least: 100, most: 4_000 };
const SETTLES_WITHIN_MS = 60_000;

for (const kind of DATABASES) {
  test(`killed and frozen workers lose nothing, and late results change nothing, on ${kind}`, {
    timeout: 180_000,
  }, async (t) => {
    const history: HistoryEvent[] = [];
    const chance = seededRandom(seed, `workers ${kind}`);
    const closing = closeAfterTest(t);
    const database = await createTestDatabase(kind);
    closing(() => database.drop());
    const site = await startInProcessServer({
      database,
      clock: acceleratedClock(RATE),
      endpoint: { maxRetries: 5 },
    });
    closing(() => site.close());
    const options = {
      server: site.url,
      endpointId: site.endpoint.id,
      key: ROOT_KEY,
      folder: database.data,
      history,
    };
    const workers = [
      new KillableWorker('single', { ...options, protocol: 'public', concurrency: 1 }),
      new KillableWorker('batch', { ...options, protocol: 'public', concurrency: 3 }),
      new KillableWorker('fast', { ...options, protocol: 'channel', concurrency: 1 }),
      new KillableWorker('wide', { ...options, protocol: 'channel', concurrency: 4 }),
    ];
    const clients = new SimulatedClients({
      server: () => site.url,
      endpointId: site.endpoint.id,
      key: ROOT_KEY,
      history,
      random: seededRandom(seed, `clients ${kind}`),
      jobDurationMs: { least: 0, most: 500 },
      disruptions: { cancel: 5, retry: 5, purge: 0 },
      streams: false,
    });

    closing(() => Promise.all(workers.map((worker) => worker.kill())));
    const recorded = (): HistoryEvent[] => [
      ...history,
      ...workers.flatMap((worker) => worker.recordedEvents()),
    ];
    let rounds = 0;
    for (; rounds === 0 || (rounds < MOST_ROUNDS && lateResults(recorded()) === 0); rounds += 1) {
      const over = new AbortController();
      const working = clients.runClients(6, { least: 50, most: 250 }, () => over.signal.aborted);
      const frozen: Promise<void>[] = [];
      for (let faults = 0; faults < FAULTS; faults += 1) {
        await pause(chance.between(BETWEEN_FAULTS.least, BETWEEN_FAULTS.most));
        const worker = chance.pick(workers);
        if (worker === undefined) continue;
        if (chance.chance(0.4)) {
          await worker.kill();
          worker.start(chance.chance(0.5));
        } else if (!worker.frozen) {
          worker.suspend();
          frozen.push(pause(chance.between(FROZEN_MS.least, FROZEN_MS.most)).then(() => worker.resume()));
        }
      }
      over.abort();
      await Promise.all([working, ...frozen]);
      await clients.waitForAllEnds(SETTLES_WITHIN_MS);
    }
    const counts = await clients.health();
    await Promise.all(workers.map((worker) => worker.kill()));
    history.push(...workers.flatMap((worker) => worker.recordedEvents()));

    const late = lateResults(history);
    process.stdout.write(
      `${kind}: ${rounds * FAULTS} faults, ${clients.jobs} jobs: ${JSON.stringify(clients.tally())}, ` +
        `${late} results came too late\n`,
    );
    assertHistorySafe(history);
    assert.deepEqual([counts.inQueue, counts.inProgress], [0, 0]);
    assert.ok(late > 0, 'no worker was frozen long enough to be late');
  });
}

for (const protocol of ['public', 'channel'] as const) {
  test(`the job of a frozen worker goes to another; thawed, its result is refused, over the ${protocol} protocol`, {
    timeout: 60_000,
  }, async (t) => {
    const history: HistoryEvent[] = [];
    const closing = closeAfterTest(t);
    const database = await createTestDatabase('sqlite');
    closing(() => database.drop());
    const site = await startInProcessServer({ database, clock: acceleratedClock(RATE) });
    closing(() => site.close());
    const options = {
      server: site.url,
      endpointId: site.endpoint.id,
      key: ROOT_KEY,
      folder: database.data,
      history,
      protocol,
      concurrency: 1,
    };
    const clients = new SimulatedClients({
      server: () => site.url,
      endpointId: site.endpoint.id,
      key: ROOT_KEY,
      history,
      random: seededRandom(seed, protocol),
      jobDurationMs: { least: 1_000, most: 1_000 },
      disruptions: { cancel: 0, retry: 0, purge: 0 },
      streams: false,
      syncShare: 0,
    });
    const frozen = new KillableWorker('frozen', options);
    closing(() => frozen.kill());
    await clients.submit();
    while (!frozen.recordedEvents().some(({ kind }) => kind === 'execution')) await pause(10);
    frozen.suspend();
    const other = new KillableWorker('other', options);
    closing(() => other.kill());
    await clients.waitForAllEnds(20_000);
    const before = other.recordedEvents().filter(({ kind }) => kind === 'result').length;
    frozen.resume();
    while (!frozen.recordedEvents().some(({ kind }) => kind === 'result')) await pause(10);
    // By the time that another job has come back from it, what it said before was heard.
    await other.kill();
    await clients.submit();
    await clients.waitForAllEnds(20_000);
    await frozen.kill();
    history.push(...frozen.recordedEvents(), ...other.recordedEvents());
    assertHistorySafe(history);
    assert.equal(before, 1);
  });
}

/** Results that were posted and are not what their job came to. */
function lateResults(history: readonly HistoryEvent[]): number {
  const outcomes = new Set(
    history.flatMap((event) =>
      event.kind === 'observation' ? [`${event.id} ${event.output} ${event.error}`] : [],
    ),
  );
  return history.filter(
    (event) => event.kind === 'result' && !outcomes.has(`${event.id} ${event.output} ${event.error}`),
  ).length;
}
