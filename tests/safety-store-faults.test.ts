import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { test } from 'node:test';
import { chanceOf } from './safety/chance.ts';
import { startChannelWorker } from './safety/channel-worker.ts';
import { cleanup } from './safety/cleanup.ts';
import { Clients } from './safety/clients.ts';
import { fastClock } from './safety/fast-clock.ts';
import { faultyStore } from './safety/faulty-store.ts';
import type { FaultyStore } from './safety/faulty-store.ts';
import { instant } from './safety/history.ts';
import type { Event } from './safety/history.ts';
import { startPublicWorker } from './safety/public-worker.ts';
import { openSite } from './safety/site.ts';
import { assertSafe } from './safety/verdict.ts';
import { DATABASES, freshDatabase } from './support/databases.ts';
import { seed } from './support/seed.ts';
import { ROOT_KEY } from './support/server.ts';

const RUN_MS = 20_000;
const SETTLES_WITHIN_MS = 40_000;
/** Half a minute of silence takes 1.5 s. */
const RATE = 20;
const ODDS = { before: 0.08, after: 0.08 };

for (const kind of DATABASES) {
  test(`store calls that fail before or after they took effect lose nothing and change no end, on ${kind}`, { timeout: 180_000 }, async (t) => {
    const history: Event[] = [];
    const closing = cleanup(t);
    const database = await freshDatabase(kind);
    closing(() => database.drop());
    let faulty: FaultyStore | undefined;
    const site = await openSite({
      database,
      clock: fastClock(RATE),
      endpoint: { maxRetries: 3 },
      // Opening is another story; the faults begin with the run.
      jobs: (store) => (faulty = faultyStore(store, chanceOf(seed, `faults ${kind}`), ODDS)).store,
    });
    closing(() => site.close());
    history.push({ kind: 'disturbance', what: 'store calls fail', at: instant() });
    const worker = { server: () => site.url, endpointId: site.endpoint.id, key: ROOT_KEY, pingEvery: 300, report: (event: Event) => void history.push(event) };
    const workers = [
      startPublicWorker({ ...worker, workerId: 'single', concurrency: 1 }),
      startPublicWorker({ ...worker, workerId: 'batch', concurrency: 5 }),
      startChannelWorker({ ...worker, workerId: 'channel', concurrency: 5 }),
    ];
    closing(() => Promise.all(workers.map((each) => each.stop())));
    const clients = new Clients({ server: () => site.url, endpointId: site.endpoint.id, key: ROOT_KEY, history, chance: chanceOf(seed, `clients ${kind}`), work: { least: 0, most: 100 }, mischief: { cancel: 6, retry: 6, purge: 0 }, streams: true });
    const over = new AbortController();
    const working = clients.work(8, { least: 0, most: 60 }, over.signal);
    await pause(RUN_MS);
    over.abort();
    await working;
    faulty?.calm();
    await clients.settle(SETTLES_WITHIN_MS);
    const counts = await clients.health();

    process.stdout.write(`${kind}: ${clients.jobs} jobs: ${JSON.stringify(clients.tally())}, faults ${JSON.stringify(faulty?.faults())}\n`);
    assertSafe(history);
    assert.deepEqual([counts.inQueue, counts.inProgress], [0, 0]);
  });
}
