import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { test } from 'node:test';
import { chanceOf } from './safety/chance.ts';
import { cleanup } from './safety/cleanup.ts';
import { Clients } from './safety/clients.ts';
import { fastClock } from './safety/fast-clock.ts';
import type { Event } from './safety/history.ts';
import { openSite } from './safety/site.ts';
import { assertSafe } from './safety/verdict.ts';
import { WorkerProcess } from './safety/worker-processes.ts';
import { DATABASES, freshDatabase } from './support/databases.ts';
import { seed } from './support/seed.ts';
import { ROOT_KEY } from './support/server.ts';

// Streams are not looked at here. The public protocol names no attempt, so a worker that thaws beside a second attempt of
// its own at the same job mixes the chunks of both; its results stay one.

/** Half a minute of silence takes 1.5 s. */
const RATE = 20;
const FAULTS = 60;
const BETWEEN_FAULTS = { least: 50, most: 500 };
/** From a hiccup to far beyond the silence after which a worker is taken for dead. */
const FROZEN_MS = { least: 100, most: 4_000 };
const SETTLES_WITHIN_MS = 60_000;

for (const kind of DATABASES) {
  test(`workers that are killed, frozen and thawed lose nothing, and what they say too late changes nothing, on ${kind}`, {
    timeout: 180_000,
  }, async (t) => {
    const history: Event[] = [];
    const chance = chanceOf(seed, `workers ${kind}`);
    const closing = cleanup(t);
    const database = await freshDatabase(kind);
    closing(() => database.drop());
    const site = await openSite({ database, clock: fastClock(RATE), endpoint: { maxRetries: 5 } });
    closing(() => site.close());
    const options = {
      server: site.url,
      endpointId: site.endpoint.id,
      key: ROOT_KEY,
      folder: database.data,
      history,
    };
    const workers = [
      new WorkerProcess('single', { ...options, protocol: 'public', concurrency: 1 }),
      new WorkerProcess('batch', { ...options, protocol: 'public', concurrency: 3 }),
      new WorkerProcess('fast', { ...options, protocol: 'channel', concurrency: 1 }),
      new WorkerProcess('wide', { ...options, protocol: 'channel', concurrency: 4 }),
    ];
    const clients = new Clients({
      server: () => site.url,
      endpointId: site.endpoint.id,
      key: ROOT_KEY,
      history,
      chance: chanceOf(seed, `clients ${kind}`),
      work: { least: 0, most: 500 },
      mischief: { cancel: 5, retry: 5, purge: 0 },
      streams: false,
    });

    closing(() => Promise.all(workers.map((worker) => worker.kill())));
    let over = false;
    const working = clients.work(6, { least: 50, most: 250 }, () => over);
    const frozen: Promise<void>[] = [];
    for (let faults = 0; faults < FAULTS; faults += 1) {
      await pause(chance.between(BETWEEN_FAULTS.least, BETWEEN_FAULTS.most));
      const worker = chance.pick(workers);
      if (worker === undefined) continue;
      if (chance.happens(0.4)) {
        await worker.kill();
        worker.start(chance.happens(0.5));
      } else if (!worker.frozen) {
        worker.freeze();
        frozen.push(pause(chance.between(FROZEN_MS.least, FROZEN_MS.most)).then(() => worker.thaw()));
      }
    }
    over = true;
    await Promise.all([working, ...frozen]);
    await clients.settle(SETTLES_WITHIN_MS);
    const counts = await clients.health();
    await Promise.all(workers.map((worker) => worker.kill()));
    history.push(...workers.flatMap((worker) => worker.notes()));

    const late = lateResults(history);
    process.stdout.write(
      `${kind}: ${FAULTS} faults, ${clients.jobs} jobs: ${JSON.stringify(clients.tally())}, ${late} results came too late\n`,
    );
    assertSafe(history);
    assert.deepEqual([counts.inQueue, counts.inProgress], [0, 0]);
    assert.ok(late > 0, 'no worker was frozen long enough to be late');
  });
}

for (const protocol of ['public', 'channel'] as const) {
  test(`the job of a worker that freezes goes to another; thawed, it finds that nobody waits for it any more, over the ${protocol} protocol`, {
    timeout: 60_000,
  }, async (t) => {
    const history: Event[] = [];
    const closing = cleanup(t);
    const database = await freshDatabase('sqlite');
    closing(() => database.drop());
    const site = await openSite({ database, clock: fastClock(RATE) });
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
    const clients = new Clients({
      server: () => site.url,
      endpointId: site.endpoint.id,
      key: ROOT_KEY,
      history,
      chance: chanceOf(seed, protocol),
      work: { least: 1_000, most: 1_000 },
      mischief: { cancel: 0, retry: 0, purge: 0 },
      streams: false,
      waiting: 0,
    });
    const frozen = new WorkerProcess('frozen', options);
    closing(() => frozen.kill());
    await clients.submit();
    while (!frozen.notes().some(({ kind }) => kind === 'execution')) await pause(10);
    frozen.freeze();
    const other = new WorkerProcess('other', options);
    closing(() => other.kill());
    await clients.settle(20_000);
    const before = other.notes().filter(({ kind }) => kind === 'result').length;
    frozen.thaw();
    while (!frozen.notes().some(({ kind }) => kind === 'result')) await pause(10);
    // By the time that another job has come back from it, what it said before was heard.
    await other.kill();
    await clients.submit();
    await clients.settle(20_000);
    await frozen.kill();
    history.push(...frozen.notes(), ...other.notes());
    assertSafe(history);
    assert.equal(before, 1);
  });
}

/** Results that were posted and are not what their job came to. */
function lateResults(history: readonly Event[]): number {
  const outcomes = new Set(
    history.flatMap((event) =>
      event.kind === 'observation' ? [`${event.id} ${event.output} ${event.error}`] : [],
    ),
  );
  return history.filter(
    (event) => event.kind === 'result' && !outcomes.has(`${event.id} ${event.output} ${event.error}`),
  ).length;
}
