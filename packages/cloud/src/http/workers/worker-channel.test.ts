import assert from 'node:assert/strict';
import { once } from 'node:events';
import { duplexPair } from 'node:stream';
import type { Duplex } from 'node:stream';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { DATABASES } from '../../../../testing/src/test-database.ts';
import { WORKER_TIMEOUT_MS } from '../../queue/connected-worker.ts';
import { queueFixtures, SECOND } from '../../queue/job-queue.fixture.ts';
import type { QueueFixture } from '../../queue/job-queue.fixture.ts';
import { createLog } from '../../support/log.ts';
import { MAX_UNREAD_BYTES, WorkerChannel } from './worker-channel.ts';
import { ChannelActivity } from './channel-activity.ts';

const VALUES = 5_000;
const PING_MS = 10 * SECOND;

/** Two connections of one worker, with time that is turned by hand. */
class Pair {
  readonly near: Duplex[] = [];
  readonly #workerSocket: Duplex[] = [];
  readonly #context: TestContext;
  readonly #on: QueueFixture;
  #now = 0;

  constructor(context: TestContext, on: QueueFixture) {
    this.#context = context;
    this.#on = on;
    context.mock.timers.enable({ apis: ['setInterval'] });
    context.mock.method(performance, 'now', () => this.#now);
    const activity = new ChannelActivity();
    for (let count = 0; count < 2; count += 1) {
      const [near, far] = duplexPair();
      new WorkerChannel({
        socket: near,
        queue: on.queue,
        endpointId: on.id,
        workerId: 'w',
        activity,
        log: createLog({ level: 'silent', format: 'json' }),
      });
      this.near.push(near);
      this.#workerSocket.push(far.resume());
    }
    context.after(() => {
      for (const end of [...this.near, ...this.#workerSocket]) end.destroy();
    });
  }

  /** A heartbeat arrives on one of them. */
  async beat(which: number): Promise<void> {
    const arrived = once(this.near[which] as Duplex, 'data');
    this.#workerSocket[which]?.write('L \n');
    await arrived;
  }

  /** Time in which the worker pings by HTTP, as it does while a handler keeps its thread busy. */
  pass(milliseconds: number): void {
    for (let passed = 0; passed < milliseconds; passed += SECOND) {
      this.#now += SECOND;
      this.#on.clock.advance(SECOND);
      this.#on.queue.heartbeats.recordHeartbeat(this.#on.id, 'w');
      this.#context.mock.timers.tick(SECOND);
    }
  }

  get open(): boolean[] {
    return this.near.map(({ destroyed }) => !destroyed);
  }
}

/** The worker's side of a channel: sends lines to the server and reads those that it sends. */
class WorkerSide {
  readonly #serverSocket: Duplex;
  readonly #workerSocket: Duplex;
  #received = '';

  constructor(context: TestContext, on: QueueFixture) {
    [this.#serverSocket, this.#workerSocket] = duplexPair();
    new WorkerChannel({
      socket: this.#serverSocket,
      queue: on.queue,
      endpointId: on.id,
      workerId: 'w',
      activity: new ChannelActivity(),
      log: createLog({ level: 'silent', format: 'json' }),
    });
    this.#workerSocket.setEncoding('utf8').on('data', (text: string) => (this.#received += text));
    context.after(() => this.cut());
  }

  send(...lines: string[]): void {
    this.#workerSocket.write(lines.map((line) => `${line}\n`).join(''));
  }

  /** The rest of the next line of this kind. */
  async next(letter: string): Promise<string> {
    for (;;) {
      const line = new RegExp(`^${letter} ?(.*)\n`, 'm').exec(this.#received);
      if (line !== null) {
        this.#received = this.#received.replace(line[0], '');
        return line[1] ?? '';
      }
      await once(this.#workerSocket, 'data');
    }
  }

  cut(): void {
    this.#serverSocket.destroy();
    this.#workerSocket.destroy();
  }
}

for (const kind of DATABASES) {
  describe(`the channel of a worker, on ${kind}`, () => {
    const bench = queueFixtures(kind);

    for (const [what, letter] of [
      ['returned', 'B'],
      ['ended', 'D'],
    ] as const)
      test(`a job that was cut off is not taken for started because its worker has just ${what} an earlier attempt`, async (context) => {
        context.mock.timers.enable({ apis: ['setInterval'] });
        const on = bench();
        const job = await on.submit();
        const first = new WorkerSide(context, on);
        first.send('T 1');
        const [earlier = ''] = (await first.next('J')).split(' ');
        await on.queue.returnToQueue(on.id, job.seq, { workerId: 'w', lease: earlier });
        first.send('T 1');
        await first.next('J');
        // The worker has not read it, and holds the attempt before until that is acknowledged.
        first.cut();
        const second = new WorkerSide(context, on);
        second.send(`L ${job.id}`, `${letter} ${job.id} ${earlier}${letter === 'D' ? ' {"output":1}' : ''}`);
        assert.equal(await second.next('A'), `${job.id} ${earlier}`);
        await on.advance(20 * SECOND, () => {
          on.queue.heartbeats.recordTake(on.id, 'w', true);
          on.queue.heartbeats.recordRunningJobs(on.id, 'w', []);
        });
        assert.deepEqual([await on.status(job), (await on.job(job))?.retries], ['IN_QUEUE', 0]);
      });

    test('counts as a heartbeat again a moment after it opened: another server may notice late', (context) => {
      context.mock.timers.enable({ apis: ['setInterval'] });
      const on = bench();
      const [near] = duplexPair();
      context.after(() => near.destroy());
      new WorkerChannel({
        socket: near,
        queue: on.queue,
        endpointId: on.id,
        workerId: 'w',
        activity: new ChannelActivity(),
        log: createLog({ level: 'silent', format: 'json' }),
      });
      on.clock.advance(SECOND);
      const noticed = on.clock.now();
      assert.equal(on.queue.heartbeats.isGoneSince(on.id, 'w', noticed), true);
      on.clock.advance(SECOND);
      context.mock.timers.tick(2 * SECOND);
      assert.equal(on.queue.heartbeats.isGoneSince(on.id, 'w', noticed), false);
    });

    test('of progress faster than it is stored, the last is kept, and the result does not wait', async (context) => {
      const on = bench();
      const progress = context.mock.method(on.queue, 'progress');
      const [near, far] = duplexPair();
      new WorkerChannel({
        socket: near,
        queue: on.queue,
        endpointId: on.id,
        workerId: 'w',
        activity: new ChannelActivity(),
        log: createLog({ level: 'silent', format: 'json' }),
      });
      const job = await on.submit();
      const { lease } = await on.takeOne('w');
      const said = `${job.id} ${String(lease)}`;
      far.write(Array.from({ length: VALUES }, (_, n) => `P ${said} ${n}\n`).join(''));
      far.write(`D ${said} {"output":"whole"}\n`);
      const [answer] = (await once(far.setEncoding('utf8'), 'data')) as [string];
      assert.equal(answer, `A ${said}\n`);
      assert.equal(await on.status(job), 'COMPLETED');
      const shown = progress.mock.calls.map(({ arguments: [, , , value] }) => value);
      assert.ok(shown.length <= 2, `${shown.length} values were kept`);
      assert.equal(shown.at(-1), String(VALUES - 1));
      far.destroy();
      near.destroy();
    });

    test('asks a queue that has stopped for nothing', async (context) => {
      const on = bench();
      // Like the answers of a queue that has stopped: at once, and empty. The last one is for whoever asks
      // again and again.
      const atOnce = (calls: number): Promise<never[]> =>
        calls < 10 ? Promise.resolve([]) : new Promise(() => undefined);
      const stops = context.mock.method(on.queue, 'waitForCancellations', () =>
        atOnce(stops.mock.callCount()),
      );
      const takes = context.mock.method(on.queue, 'take', () => atOnce(takes.mock.callCount()));
      on.queue.close();
      const [near, far] = duplexPair();
      new WorkerChannel({
        socket: near,
        queue: on.queue,
        endpointId: on.id,
        workerId: 'w',
        activity: new ChannelActivity(),
        log: createLog({ level: 'silent', format: 'json' }),
      });
      far.write('T 1\nL \n');
      assert.deepEqual(await once(far.setEncoding('utf8'), 'data'), ['H\n']);
      far.destroy();
      near.destroy();
      assert.deepEqual([stops.mock.callCount(), takes.mock.callCount()], [0, 0]);
    });

    test('leaves nothing behind on its socket when a slow worker has read what it had', async (context) => {
      const on = bench();
      const taken = Promise.withResolvers<void>();
      context.mock.method(on.queue, 'take', async () => {
        taken.resolve();
        return new Promise(() => undefined);
      });
      const [near, far] = duplexPair();
      new WorkerChannel({
        socket: near,
        queue: on.queue,
        endpointId: on.id,
        workerId: 'w',
        activity: new ChannelActivity(),
        log: createLog({ level: 'silent', format: 'json' }),
      });
      const listeners = (): number[] => ['close', 'drain'].map((event) => near.listenerCount(event));
      const before = listeners();
      near.write(Buffer.alloc(MAX_UNREAD_BYTES + 1));
      far.write('T 1\n');
      await once(near, 'data');
      far.resume();
      await taken.promise;
      assert.deepEqual(listeners(), before);
      far.destroy();
      near.destroy();
    });

    test('is closed when another one of the same worker has gone on without it', async (context) => {
      const pair = new Pair(context, bench());
      await pair.beat(0);
      for (let passed = 0; passed < WORKER_TIMEOUT_MS; passed += PING_MS) {
        await pair.beat(1);
        pair.pass(PING_MS);
        assert.deepEqual(pair.open, [true, true], `after ${passed + PING_MS} ms`);
      }
      await pair.beat(1);
      pair.pass(5 * SECOND);
      assert.deepEqual(pair.open, [false, true]);
      pair.pass(10 * WORKER_TIMEOUT_MS);
      assert.deepEqual(pair.open, [false, true], 'the one that is left is alone');
    });

    test('stays open beside another that is as active, as silent, or was heard first', async (context) => {
      const pair = new Pair(context, bench());
      for (let passed = 0; passed < 5 * WORKER_TIMEOUT_MS; passed += PING_MS) {
        await pair.beat(0);
        pair.pass(PING_MS / 2);
        await pair.beat(1);
        pair.pass(PING_MS / 2);
      }
      // A handler keeps the thread of both busy.
      pair.pass(5 * WORKER_TIMEOUT_MS);
      await pair.beat(1);
      pair.pass(2 * SECOND);
      await pair.beat(0);
      pair.pass(5 * SECOND);
      assert.deepEqual(pair.open, [true, true]);
    });
  });
}
