import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { test } from 'node:test';
import { chanceOf } from './safety/chance.ts';
import { startChannelWorker } from './safety/channel-worker.ts';
import { cleanup } from './safety/cleanup.ts';
import { Clients } from './safety/clients.ts';
import { createEndpoint } from './safety/endpoint.ts';
import { fastClock } from './safety/fast-clock.ts';
import { instant } from './safety/history.ts';
import type { Event } from './safety/history.ts';
import { startPublicWorker } from './safety/public-worker.ts';
import { Servers } from './safety/servers.ts';
import { openSite } from './safety/site.ts';
import { assertSafe } from './safety/verdict.ts';
import { freshDatabase } from './support/databases.ts';
import { seed } from './support/seed.ts';
import { ROOT_KEY } from './support/server.ts';

const KILLS = 12;
/** Milliseconds that both are up, and that one is down. */
const BOTH_UP = { least: 100, most: 1_500 };
const ONE_DOWN = { least: 0, most: 1_500 };
/** A worker stays on one connection for about this long. */
const STAYS = { least: 500, most: 4_000 };
/** A job whose server died before it could hand it over is noticed after a look (10 s) and some doubt (15 s). */
const SETTLES_WITHIN_MS = 70_000;

test(`two servers share the work; ${KILLS} kills, now of one, now of the other, lose nothing and change no end`, {
  timeout: 240_000,
}, async (t) => {
  const closing = cleanup(t);
  const history: Event[] = [];
  const chance = chanceOf(seed, 'kills');
  const database = await freshDatabase('postgres');
  closing(() => database.drop());
  const second = mkdtempSync(join(tmpdir(), 'berth-test-'));
  closing(async () => rmSync(second, { recursive: true, force: true }));
  const servers = new Servers(database, [database.data, second], chanceOf(seed, 'addresses'), history);
  closing(() => servers.stop());
  const endpointId = await createEndpoint((await servers.start(0)).client(), 1);
  await servers.start(1);
  const worker = {
    server: servers.address,
    endpointId,
    key: ROOT_KEY,
    pingEvery: 1_000,
    report: (event: Event) => void history.push(event),
  };
  const moving = chanceOf(seed, 'moving');
  const movesAfter = (): number => moving.between(STAYS.least, STAYS.most);
  const workers = [
    startPublicWorker({ ...worker, workerId: 'single', concurrency: 1 }),
    startPublicWorker({ ...worker, workerId: 'batch', concurrency: 5 }),
    startChannelWorker({ ...worker, workerId: 'channel', concurrency: 5, numbers: false }),
    startChannelWorker({ ...worker, workerId: 'mover', concurrency: 3, movesAfter }),
  ];
  const stopWorkers = (): Promise<unknown> => Promise.all(workers.map((each) => each.stop()));
  closing(stopWorkers);
  const clients = new Clients({
    server: servers.address,
    endpointId,
    key: ROOT_KEY,
    history,
    chance: chanceOf(seed, 'clients'),
    work: { least: 0, most: 150 },
    mischief: { cancel: 4, retry: 3, purge: 0 },
    streams: true,
  });

  let over = false;
  const working = clients.work(8, { least: 20, most: 150 }, () => over);
  while (servers.kills < KILLS) {
    await pause(chance.between(BOTH_UP.least, BOTH_UP.most));
    const index = chance.between(0, 1);
    await servers.kill(index);
    await pause(chance.between(ONE_DOWN.least, ONE_DOWN.most));
    await servers.start(index);
  }
  over = true;
  await working;
  await clients.settle(SETTLES_WITHIN_MS);
  const counts = await clients.health();
  await stopWorkers();
  await servers.stop();

  process.stdout.write(
    `two servers: ${servers.kills} kills, ${clients.jobs} jobs: ${JSON.stringify(clients.tally())}\n`,
  );
  assertSafe(history);
  assert.deepEqual([counts.inQueue, counts.inProgress], [0, 0]);
  assert.deepEqual(servers.defects(), []);
});

test('a worker that moves from one server to the other keeps its job', { timeout: 60_000 }, async (t) => {
  const closing = cleanup(t);
  const history: Event[] = [];
  const database = await freshDatabase('postgres');
  closing(() => database.drop());
  const clock = fastClock(20);
  const sites = [
    await openSite({ database, clock, endpoint: { maxRetries: 0 } }),
    await openSite({ database, clock, endpoint: { maxRetries: 0 } }),
  ];
  closing(() => Promise.all(sites.map((site) => site.close())));
  let connections = 0;
  const address = (): string => sites[Math.min(connections++, 1)]?.url ?? '';
  let moved = false;
  const worker = startChannelWorker({
    server: address,
    endpointId: 'safety',
    workerId: 'mover',
    key: ROOT_KEY,
    concurrency: 1,
    pingEvery: 300,
    report: (event) => void history.push(event),
    movesAfter: () => {
      const stays = moved ? 60_000 : 1_000;
      moved = true;
      return stays;
    },
  });
  closing(() => worker.stop());
  // The server that it left gives it 10 s to come back.
  const clients = new Clients({
    server: () => sites[0]?.url ?? '',
    endpointId: 'safety',
    key: ROOT_KEY,
    history,
    chance: chanceOf(seed, 'moving'),
    work: { least: 13_000, most: 13_000 },
    mischief: { cancel: 0, retry: 0, purge: 0 },
    streams: false,
  });
  await clients.submit();
  await clients.settle(30_000);
  assert.equal(connections, 2);
  assertSafe(history);
  assert.equal(history.filter(({ kind }) => kind === 'execution').length, 1);
});

for (const protocol of ['public', 'channel'] as const) {
  test(`a job that a server took into its grave is missed by the one that its worker talks to now, over the ${protocol} protocol`, {
    timeout: 60_000,
  }, async (t) => {
    const closing = cleanup(t);
    const history: Event[] = [];
    const database = await freshDatabase('postgres');
    closing(() => database.drop());
    const clock = fastClock(20);
    const lasting = await openSite({ database, clock });
    closing(() => lasting.close());
    const dying = await openSite({ database, clock });
    const clients = new Clients({
      server: () => lasting.url,
      endpointId: 'safety',
      key: ROOT_KEY,
      history,
      chance: chanceOf(seed, protocol),
      work: { least: 10, most: 10 },
      mischief: { cancel: 0, retry: 0, purge: 0 },
      streams: false,
    });
    const start = protocol === 'public' ? startPublicWorker : startChannelWorker;
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
    // The worker is there and known before the other server takes the next job for it, and ends without a word.
    await clients.submit();
    await clients.settle(20_000);
    const taking = dying.queue.take('safety', 'worker', 1, 20_000, new AbortController().signal);
    await worker.stop();
    await clients.submit();
    assert.equal((await taking).length, 1);
    history.push({ kind: 'disturbance', what: 'the server that took the job ended', at: instant() });
    await dying.close();
    const again = start({
      server: () => lasting.url,
      endpointId: 'safety',
      workerId: 'worker',
      key: ROOT_KEY,
      concurrency: 1,
      pingEvery: 300,
      run: 'again',
      report: (event) => void history.push(event),
    });
    closing(() => again.stop());
    await clients.settle(20_000);
    assertSafe(history);
    assert.equal(clients.tally()['IN_PROGRESS'], undefined);
  });
}
