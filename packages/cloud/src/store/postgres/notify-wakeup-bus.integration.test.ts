import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import pg from 'pg';
import type { Pool } from 'pg';
import { createTestDatabase } from '../../../../testing/src/test-database.ts';
import type { TestDatabase } from '../../../../testing/src/test-database.ts';
import type { Wakeup, WakeupBus } from '../wakeup-bus.ts';
import { notifyWakeupBus } from './notify-wakeup-bus.ts';
import { waitUntilPasses } from '../../../../testing/src/wait-for.ts';

describe('wake-ups between servers', () => {
  let database: TestDatabase;
  let pool: Pool;
  const errors: Error[] = [];
  before(async () => {
    database = await createTestDatabase('postgres');
    pool = new pg.Pool({ connectionString: database.url, max: 4 });
    pool.on('error', (error) => void errors.push(error));
  });
  after(async () => {
    await pool.end();
    await database.drop();
  });

  /** A server that keeps what it hears. */
  const server = async (name: string): Promise<{ wakeups: WakeupBus; heard: Wakeup[] }> => {
    const heard: Wakeup[] = [];
    const wakeups = await notifyWakeupBus({
      url: database.url,
      server: name,
      pool,
      onError: (error) => void errors.push(error),
    });
    wakeups.subscribe((wakeup) => void heard.push(wakeup));
    return { wakeups, heard };
  };
  const queue = (endpointId: string): Wakeup => ({ kind: 'queue', endpointId });
  /** Without what two servers tell each other while they meet. */
  const news = ({ heard }: { heard: Wakeup[] }): Wakeup[] =>
    heard.filter((wakeup) => wakeup.kind !== 'queue' || wakeup.endpointId !== 'hello');
  /** Both know of each other once each has heard the other, and each has told the other to look again. */
  const met = async (
    one: { wakeups: WakeupBus; heard: Wakeup[] },
    other: { wakeups: WakeupBus; heard: Wakeup[] },
  ): Promise<void> => {
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      await waitUntilPasses(() => {
        from.wakeups.publish(queue('hello'));
        assert.deepEqual(new Set(to.heard.map(({ kind }) => kind)), new Set(['missed', 'queue']));
      });
    }
    await waitUntilPasses(async () => {
      const before = [one.heard.length, other.heard.length];
      await pool.query('select 1');
      assert.deepEqual([one.heard.length, other.heard.length], before);
      one.heard.length = 0;
      other.heard.length = 0;
    });
  };

  test('reach every other server, of one turn together and each once, and not the one that sent them', async () => {
    const [a, b] = [await server('a'), await server('b')];
    await met(a, b);
    const sent: Wakeup[] = [
      queue('e1'),
      { kind: 'job', endpointId: 'e1', seq: 7 },
      { kind: 'stop', endpointId: 'e1', workerId: 'w', jobId: 'j' },
      { kind: 'forget', what: 'keys' },
    ];
    for (const wakeup of [...sent, ...sent]) a.wakeups.publish(wakeup);
    await waitUntilPasses(() => assert.ok(b.heard.length >= sent.length));
    assert.deepEqual(news(b), sent);
    assert.deepEqual(
      a.heard.filter((wakeup) => 'endpointId' in wakeup && wakeup.endpointId === 'e1'),
      [],
    );
    for (const { wakeups } of [a, b]) await wakeups.close();
  });

  test('of any number fit what PostgreSQL carries', async () => {
    const [a, b] = [await server('a'), await server('b')];
    await met(a, b);
    for (let n = 0; n < 2_000; n += 1) a.wakeups.publish(queue(`endpoint-${n}`));
    await waitUntilPasses(() =>
      assert.equal(new Set(b.heard.map((wakeup) => JSON.stringify(wakeup))).size >= 2_000, true),
    );
    assert.deepEqual(errors, []);
    for (const { wakeups } of [a, b]) await wakeups.close();
  });

  test('of any characters fit what PostgreSQL carries', async (t) => {
    const [a, b] = [await server('a'), await server('b')];
    t.after(() => Promise.all([a.wakeups.close(), b.wakeups.close()]));
    await met(a, b);
    const sent = Array.from(
      { length: 25 },
      (_, n): Wakeup => ({
        kind: 'stop',
        endpointId: 'letters',
        workerId: `${'工'.repeat(190)}${n}`,
        jobId: `j${n}`,
      }),
    );
    for (const wakeup of sent) a.wakeups.publish(wakeup);
    await waitUntilPasses(() =>
      assert.deepEqual(new Set(b.heard.filter((wakeup) => wakeup.kind === 'stop')), new Set(sent)),
    );
    assert.deepEqual(errors, []);
  });

  test('too large for a message do not block others; with the next message every server checks again', async (t) => {
    const [a, b] = [await server('a'), await server('b')];
    t.after(() => Promise.all([a.wakeups.close(), b.wakeups.close()]));
    await met(a, b);
    for (const endpointId of ['before', 'x'.repeat(9_000), 'after']) a.wakeups.publish(queue(endpointId));
    await waitUntilPasses(() =>
      assert.deepEqual(
        errors.splice(0).map(({ message }) => message),
        ['payload string too long'],
      ),
    );
    a.wakeups.publish(queue('next'));
    await waitUntilPasses(() =>
      assert.ok(b.heard.some((wakeup) => 'endpointId' in wakeup && wakeup.endpointId === 'next')),
    );
    const told = new Set(b.heard.map((wakeup) => ('endpointId' in wakeup ? wakeup.endpointId : wakeup.kind)));
    assert.deepEqual(
      ['before', 'after', 'missed', 'next'].filter((one) => !told.has(one)),
      [],
    );
  });

  test('arrive again after the connection was lost', async () => {
    const [a, b] = [await server('a'), await server('b')];
    await met(a, b);
    await pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'berth wakeups' ` +
        'and datname = current_database()',
    );
    await waitUntilPasses(() => {
      a.wakeups.publish(queue('after'));
      assert.ok(b.heard.some((wakeup) => 'endpointId' in wakeup && wakeup.endpointId === 'after'));
    });
    assert.ok(errors.length > 0);
    for (const { wakeups } of [a, b]) await wakeups.close();
  });

  /** Turns one of the two clocks of this process. */
  const turn = (t: TestContext, clock: { now(): number }, milliseconds: number): void => {
    const now = clock.now.bind(clock);
    t.mock.method(clock, 'now', () => now() + milliseconds);
  };

  test('not sent by a server that believed it was alone are made up for once it learns of another', async (t) => {
    const [a, b] = [await server('a'), await server('b')];
    t.after(() => Promise.all([a.wakeups.close(), b.wakeups.close()]));
    await met(a, b);
    turn(t, performance, 16_000);
    a.wakeups.publish(queue('kept'));
    await new Promise((resolve) => setImmediate(resolve));
    // A hello that had to wait for a connection.
    await pool.query('select pg_notify($1, $2)', ['berth', '{"from":"b","wakeups":[]}']);
    await waitUntilPasses(() => assert.deepEqual(news(b), [{ kind: 'missed' }]));
  });

  test('are sent also when the clock is set', async (t) => {
    const [a, b] = [await server('a'), await server('b')];
    t.after(() => Promise.all([a.wakeups.close(), b.wakeups.close()]));
    await met(a, b);
    turn(t, Date, 3_600_000);
    a.wakeups.publish(queue('told'));
    await waitUntilPasses(() => assert.deepEqual(news(b), [queue('told')]));
  });

  test('are not sent by a server that is alone', async () => {
    const alone = await server('alone');
    const listener = new pg.Client({ connectionString: database.url });
    await listener.connect();
    const notes: string[] = [];
    listener.on('notification', ({ payload }) => void notes.push(payload ?? ''));
    await listener.query('listen berth');
    alone.wakeups.publish(queue('nobody'));
    await new Promise((resolve) => setImmediate(resolve));
    await pool.query('select 1');
    await listener.query('select 1');
    assert.deepEqual(
      notes.filter((note) => note.includes('nobody')),
      [],
    );
    await listener.end();
    await alone.wakeups.close();
  });
});
