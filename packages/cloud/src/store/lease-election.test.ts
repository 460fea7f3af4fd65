import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { LeaseElection } from './lease-election.ts';
import { LEASE_MS } from './lease-store.ts';
import type { LeaseStore } from './lease-store.ts';

/** The row in the database, and what happens to those that ask for it. */
class LeaseRow {
  holder = '';
  epoch = 0;
  endsAt = 0;
  calls = 0;
  /** A last transaction of the holder is under way. */
  isLocked = false;
  readonly cutOff = new Set<string>();
  /** Whose questions stay without an answer, and what ends them as a time-out does. */
  readonly frozen = new Set<string>();
  readonly #unanswered: (() => void)[] = [];

  endUnanswered(): void {
    this.frozen.clear();
    for (const end of this.#unanswered.splice(0)) end();
  }

  connect(server: string): LeaseStore {
    const call = async <T>(answer: () => T): Promise<T> => {
      this.calls += 1;
      if (this.frozen.has(server))
        return new Promise<T>((_, reject) => {
          this.#unanswered.push(() => reject(new Error('no answer in time')));
        });
      if (this.cutOff.has(server)) throw new Error('the database does not answer');
      return answer();
    };
    const isHeld = (epoch: number): boolean => this.holder === server && this.epoch === epoch;
    return {
      heldForMs: () => call(() => Math.max(0, this.endsAt - performance.now())),
      takeOver: () =>
        call(() => {
          if (this.isLocked || this.endsAt > performance.now()) return undefined;
          this.holder = server;
          this.endsAt = performance.now() + LEASE_MS;
          return (this.epoch += 1);
        }),
      renew: (_, epoch) =>
        call(() => {
          if (isHeld(epoch)) this.endsAt = performance.now() + LEASE_MS;
          return isHeld(epoch);
        }),
      release: (_, epoch) =>
        call(() => {
          if (isHeld(epoch)) this.endsAt = 0;
        }),
      fence: function* (_, epoch) {
        return isHeld(epoch);
      },
      reconnect: () => undefined,
      close: async () => undefined,
    };
  }
}

describe('the election of the leading server', () => {
  let row: LeaseRow;
  let now = 0;
  const elections: LeaseElection[] = [];
  beforeEach(() => {
    now = 0;
    row = new LeaseRow();
    mock.timers.enable({ apis: ['setTimeout'] });
    mock.method(performance, 'now', () => now);
  });
  afterEach(async () => {
    row.endUnanswered();
    for (const election of elections.splice(0)) await election.close();
    mock.timers.reset();
    mock.restoreAll();
  });

  /** Time passes by whole milliseconds, and everything that waits for a promise is done after each. */
  const pass = async (milliseconds: number, done: () => boolean = () => false): Promise<number> => {
    for (let passed = 0; passed < milliseconds; passed += 1) {
      for (let turn = 0; turn < 6; turn += 1) await Promise.resolve();
      if (done()) return passed;
      now += 1;
      mock.timers.tick(1);
    }
    return milliseconds;
  };
  const prepare = (server: string): { election: LeaseElection; events: string[]; start: () => void } => {
    const events: string[] = [];
    const election = new LeaseElection({
      server,
      connect: () => row.connect(server),
      onError: () => undefined,
      onCutOff: () => undefined,
      onResigned: () => undefined,
    });
    elections.push(election);
    const start = (): void =>
      election.start(
        () => void events.push('lead'),
        () => void events.push('lost'),
      );
    return { election, events, start };
  };
  const elect = (server: string): { election: LeaseElection; events: string[] } => {
    const { start, ...elected } = prepare(server);
    start();
    return elected;
  };
  const leads =
    ({ election }: { election: LeaseElection }) =>
    (): boolean =>
      election.isLeading();

  test('a lease is taken at the moment at which it ends', async () => {
    const first = elect('first');
    await pass(1, leads(first));
    const second = elect('second');
    for (const time of [100, 350, 599, 1_234]) {
      await pass(time);
      assert.equal(leads(first)(), true);
      assert.equal(leads(second)(), false);
    }
    row.cutOff.add('first');
    const left = row.endsAt - now;
    assert.equal(await pass(LEASE_MS * 2, leads(second)), left);
    assert.equal(leads(first)(), false);
    row.cutOff.clear();
    await pass(400);
    assert.deepEqual([first.events, second.events], [['lead', 'lost'], ['lead']]);
  });

  test('a server that has not begun yet takes no lead, though it is told that the lead is free', async () => {
    const { election, start, events } = prepare('early');
    election.wake();
    await pass(LEASE_MS);
    assert.deepEqual([election.isElected(), row.calls], [false, 0]);
    start();
    await pass(1);
    assert.deepEqual([election.isLeading(), events], [true, ['lead']]);
  });

  test('two late renewals in a row do not cost the lead', async () => {
    const first = elect('first');
    await pass(1, leads(first));
    const second = elect('second');
    row.cutOff.add('first');
    await pass(LEASE_MS - 700);
    row.cutOff.clear();
    await pass(3_000, () => !leads(first)() || leads(second)());
    assert.deepEqual([first.events, second.events], [['lead'], []]);
  });

  test('one that waits for a last transaction of the former leader leads soon after it', async () => {
    const first = elect('first');
    await pass(1, leads(first));
    const second = elect('second');
    row.cutOff.add('first');
    row.isLocked = true;
    await pass(LEASE_MS + 777);
    assert.equal(leads(second)(), false);
    row.isLocked = false;
    assert.ok((await pass(1_000, leads(second))) <= 100);
  });

  test('a lease that is given back is taken at the news of it, also by one that was just asking', async () => {
    const first = elect('first');
    await pass(1, leads(first));
    const second = elect('second');
    await pass(1_500);
    // Its question is answered before the lease is returned, the news comes before the answer.
    second.election.wake();
    const resigned = first.election.resign();
    second.election.wake();
    await resigned;
    assert.ok((await pass(1_000, leads(second))) <= 1);
  });

  test('without the news it is taken within a second', async () => {
    const first = elect('first');
    await pass(1, leads(first));
    const second = elect('second');
    await pass(1_500);
    await first.election.resign();
    assert.ok((await pass(2_000, leads(second))) <= 1_000);
  });

  test('one that stood still knows before its next action that it may lead no more', async () => {
    const first = elect('first');
    await pass(1, leads(first));
    const second = elect('second');
    row.frozen.add('first');
    await pass(LEASE_MS + 1_000, leads(second));
    assert.equal(leads(first)(), false);
    assert.throws(() => first.election.fence().next(), /another server is the leader/);
    assert.equal(second.election.fence().next().done, true);
  });

  test('those that wait ask seldom while another one leads', async () => {
    const first = elect('first');
    await pass(1, leads(first));
    const second = elect('second');
    await pass(1);
    row.calls = 0;
    await pass(20_000);
    assert.equal(leads(second)(), false);
    assert.ok(row.calls <= 60, `${row.calls} questions in 20 s`);
  });
});
