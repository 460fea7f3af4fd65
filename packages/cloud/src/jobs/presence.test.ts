import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Job } from '../store/job-records.ts';
import type { WorkerRecord } from '../store/jobs.ts';
import { ManualClock } from '../support/clock.ts';
import { Presence, SILENT_MS } from './presence.ts';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

function fixture(): { clock: ManualClock; presence: Presence } {
  const clock = new ManualClock();
  return { clock, presence: new Presence(clock) };
}

/** A job that a worker holds. */
const job = (seq: number): { seq: number; id: string; lease: string } => ({
  seq,
  id: `job${seq}`,
  lease: `lease${seq}`,
});

describe('a worker', () => {
  test('lives while something of it is open, and for a while after the last that was heard', () => {
    const { clock, presence } = fixture();
    const left = presence.enter('e', 'w');
    clock.advance(10 * SILENT_MS);
    assert.equal(presence.lives('e', 'w'), true);
    left();
    clock.advance(SILENT_MS - 1);
    assert.equal(presence.lives('e', 'w'), true);
    clock.advance(1);
    assert.equal(presence.lives('e', 'w'), false);
    presence.lists('e', 'w', []);
    assert.equal(presence.lives('e', 'w'), true);
  });

  test('that was never heard of may live: nobody knows, but right after a start it is given time', () => {
    const { clock, presence } = fixture();
    assert.equal(presence.lives('e', 'w'), true);
    clock.advance(SILENT_MS);
    assert.equal(presence.lives('e', 'w'), undefined);
  });

  test('of one endpoint is none of another', () => {
    const { clock, presence } = fixture();
    clock.advance(SILENT_MS);
    presence.seen('e', 'w');
    assert.deepEqual(
      [presence.lives('e', 'w'), presence.lives('f', 'w'), presence.here('f')],
      [true, undefined, []],
    );
    presence.forgetEndpoint('e');
    assert.deepEqual(presence.here('e'), []);
  });

  test('is gone since it left unless it was heard of again', () => {
    const { clock, presence } = fixture();
    presence.enter('e', 'w')();
    const since = clock.now();
    clock.advance(SECOND);
    assert.equal(presence.goneSince('e', 'w', since), true);
    const left = presence.enter('e', 'w');
    assert.equal(presence.goneSince('e', 'w', since), false);
    left();
    assert.equal(presence.goneSince('e', 'w', since), false);
    assert.equal(presence.goneSince('e', 'never', since), true);
  });

  test('is busy with what it was given until that is released', () => {
    const { presence } = fixture();
    presence.given('e', 'w', job(1));
    presence.given('e', 'w', job(2));
    assert.equal(presence.here('e')[0]?.busy, 2);
    presence.released('e', 'w', 1);
    presence.released('e', 'unknown', 2);
    presence.released('e', null, 2);
    assert.equal(presence.here('e')[0]?.busy, 1);
  });

  test('has worked from the first job on that came to it, here or by another server', () => {
    const { clock, presence } = fixture();
    for (const workerId of ['idle', 'here', 'elsewhere']) presence.seen('e', workerId);
    presence.given('e', 'here', job(1));
    presence.released('e', 'here', 1);
    presence.compare(
      [{ ...job(2), endpointId: 'e', workerId: 'elsewhere', takenAt: clock.now() } as Job],
      clock.now(),
    );
    assert.deepEqual(
      ['idle', 'here', 'elsewhere'].map((workerId) => presence.view('e', workerId)?.worked),
      [false, true, true],
    );
  });

  test('cannot have begun what came after as many jobs as it runs at a time', () => {
    const { presence } = fixture();
    const notBegun = (): number[] => presence.notBegun('e', 'w').map(({ seq }) => seq);
    for (let seq = 1; seq <= 5; seq += 1) presence.given('e', 'w', job(seq));
    assert.deepEqual(notBegun(), [], 'it never said how many it runs');
    presence.hasPlaces('e', 'w', 2);
    assert.deepEqual(notBegun(), [3, 4, 5]);
    presence.released('e', 'w', 2);
    assert.deepEqual(notBegun(), [4, 5]);
    // What ran before goes on where there are fewer places.
    presence.hasPlaces('e', 'w', 1);
    assert.deepEqual(notBegun(), [4, 5]);
    presence.hasPlaces('e', 'w', 3);
    assert.deepEqual(notBegun(), [5]);
    assert.deepEqual(presence.notBegun('e', 'unknown'), []);
  });

  test('rests for as long as it was told', () => {
    const { clock, presence } = fixture();
    assert.equal(presence.rests('e', 'w'), false);
    presence.rest('e', 'w', 15 * SECOND);
    clock.advance(15 * SECOND - 1);
    assert.equal(presence.rests('e', 'w'), true);
    clock.advance(1);
    assert.equal(presence.rests('e', 'w'), false);
  });

  test('that was dismissed rests for good, however long it is silent; it is forgotten where nobody says for a day that it has ended', async () => {
    const { clock, presence } = fixture();
    const store = { noteWorkers: async () => undefined };
    presence.dismiss('e', 'w');
    presence.seen('e', 'other');
    for (let hour = 0; hour < 23; hour += 1) {
      clock.advance(HOUR);
      await presence.note(store);
    }
    presence.asksForWork('e', 'w', true);
    assert.deepEqual([presence.rests('e', 'w'), presence.view('e', 'other')], [true, undefined]);
    clock.advance(24 * HOUR + 1);
    await presence.note(store);
    assert.equal(presence.view('e', 'w'), undefined);
  });

  test('is silent, and has rested, no later for a clock that was set back', () => {
    const { clock, presence } = fixture();
    presence.rest('e', 'w', 15 * SECOND);
    presence.dismiss('e', 'leaving');
    clock.advance(SECOND);
    presence.lookAtClock();
    clock.advance(-HOUR);
    presence.lookAtClock();
    assert.deepEqual([presence.lives('e', 'w'), presence.rests('e', 'w')], [true, true]);
    clock.advance(14 * SECOND);
    assert.equal(presence.rests('e', 'w'), false);
    clock.advance(SILENT_MS);
    presence.lookAtClock();
    assert.deepEqual(
      [presence.lives('e', 'w'), presence.lives('e', 'unknown'), presence.here('e')],
      [false, undefined, []],
    );
    assert.equal(presence.rests('e', 'leaving'), true);
  });

  test('that is heard of just after the clock was set back lives on', () => {
    const { clock, presence } = fixture();
    presence.seen('e', 'w');
    clock.advance(-HOUR);
    presence.seen('e', 'w');
    presence.lookAtClock();
    clock.advance(SILENT_MS - 1);
    assert.equal(presence.lives('e', 'w'), true);
  });

  test('that reports a failed check is unhealthy, in words that any database keeps', () => {
    const { presence } = fixture();
    presence.unhealthy('e', 'w', 'gpu: no\0 device');
    assert.equal(presence.here('e')[0]?.unhealthy, 'gpu: no device');
    presence.lists('e', 'w', []);
    assert.equal(presence.here('e')[0]?.unhealthy, 'gpu: no device');
    presence.asksForWork('e', 'w', true);
    assert.equal(presence.here('e')[0]?.unhealthy, null, 'it has started anew');
  });
});

describe('a job', () => {
  const lost = (presence: Presence): [number, boolean][] =>
    presence.lostJobs().map(({ seq, shown }) => [seq, shown]);

  test('is lost when its worker says for a while that it runs nothing', () => {
    const { clock, presence } = fixture();
    presence.given('e', 'w', job(1));
    presence.asksForWork('e', 'w', false);
    clock.advance(SECOND);
    presence.asksForWork('e', 'w', true);
    clock.advance(14_999);
    presence.asksForWork('e', 'w', true);
    assert.deepEqual(lost(presence), []);
    clock.advance(1);
    assert.deepEqual(lost(presence), [[1, false]]);
  });

  test('is lost when a worker that asked for work since leaves it out of its list, and not before it asked', () => {
    const { clock, presence } = fixture();
    presence.asksForWork('e', 'w', false);
    presence.given('e', 'w', job(1));
    for (let time = 0; time < 10; time += 1) {
      clock.advance(10 * SECOND);
      presence.lists('e', 'w', []);
    }
    assert.deepEqual(lost(presence), [], 'the loop that would list it may be blocked');
    presence.asksForWork('e', 'w', false);
    presence.lists('e', 'w', ['another']);
    clock.advance(15 * SECOND);
    assert.deepEqual(lost(presence), [[1, false]]);
  });

  test('that the worker shows is not lost; one that it had shown is known to have begun', () => {
    const { clock, presence } = fixture();
    for (const seq of [1, 2, 3]) presence.given('e', 'w', job(seq));
    clock.advance(SECOND);
    presence.asksForWork('e', 'w', true);
    clock.advance(14 * SECOND);
    presence.showsJob('e', 'w', 1);
    presence.lists('e', 'w', ['job2']);
    clock.advance(SECOND);
    assert.deepEqual(lost(presence), [[3, false]]);
    presence.released('e', 'w', 3);
    presence.asksForWork('e', 'w', true);
    clock.advance(15 * SECOND);
    assert.deepEqual(lost(presence), [
      [1, true],
      [2, true],
    ]);
  });

  test('is doubted anew by a server that was away: what the worker said meanwhile is still to be read', () => {
    const { clock, presence } = fixture();
    presence.given('e', 'w', job(1));
    clock.advance(SECOND);
    presence.asksForWork('e', 'w', true);
    clock.advance(60 * SECOND);
    presence.awake();
    assert.deepEqual(lost(presence), []);
    clock.advance(15 * SECOND);
    assert.deepEqual(lost(presence), [[1, false]]);
  });

  test('is lost no later for a clock that was set back', () => {
    const { clock, presence } = fixture();
    presence.given('e', 'w', job(1));
    clock.advance(SECOND);
    presence.asksForWork('e', 'w', true);
    presence.lookAtClock();
    clock.advance(-HOUR);
    presence.lookAtClock();
    clock.advance(15 * SECOND);
    assert.deepEqual(lost(presence), [[1, false]]);
  });
});

describe('what is told to other servers', () => {
  test('is who was seen since it was last told, at a pace', async () => {
    const { clock, presence } = fixture();
    const told: WorkerRecord[][] = [];
    const store = { noteWorkers: async (records: WorkerRecord[]) => void told.push(records) };
    presence.seen('e', 'w1');
    const left = presence.enter('e', 'w2');
    await presence.note(store);
    assert.deepEqual(
      told.at(-1)?.map(({ workerId }) => workerId),
      ['w1', 'w2'],
    );
    presence.seen('e', 'w1');
    await presence.note(store);
    assert.equal(told.length, 1);
    clock.advance(5 * SECOND);
    await presence.note(store);
    assert.deepEqual(
      told.at(-1)?.map(({ workerId }) => workerId),
      ['w1'],
      'one that waits, as before, is told less often',
    );
    clock.advance(10 * SECOND);
    await presence.note(store);
    assert.deepEqual(
      told.at(-1)?.map(({ workerId, seenAt }) => [workerId, seenAt]),
      [['w2', clock.now()]],
    );
    left();
    clock.advance(2 * SILENT_MS + 1);
    await presence.note(store);
    clock.advance(5 * SECOND);
    await presence.note(store);
    assert.equal(presence.lives('e', 'w1'), undefined, 'who was not seen for long is forgotten');
  });

  test('is told again at the next turn where the write failed, with what was heard while it was under way', async () => {
    const { clock, presence } = fixture();
    const told: [workerId: string, seenAt: number][][] = [];
    let write = async (): Promise<void> => undefined;
    const store = {
      noteWorkers: async (records: WorkerRecord[]) => {
        await write();
        told.push(records.map(({ workerId, seenAt }) => [workerId, seenAt]));
      },
    };
    presence.enter('e', 'waits');
    await presence.note(store);
    clock.advance(15 * SECOND);
    presence.seen('e', 'heard');
    write = () => Promise.reject(new Error('the store is away'));
    await assert.rejects(presence.note(store), /the store is away/);
    const heardAt = clock.now();
    clock.advance(5 * SECOND);
    write = async () => void presence.seen('e', 'heard');
    await presence.note(store);
    assert.deepEqual(told.at(-1), [
      ['waits', clock.now()],
      ['heard', heardAt],
    ]);
    const heardAgainAt = clock.now();
    clock.advance(5 * SECOND);
    write = async () => undefined;
    await presence.note(store);
    assert.deepEqual(told.at(-1), [['heard', heardAgainAt]]);
    clock.advance(5 * SECOND);
    await presence.note(store);
    assert.equal(told.length, 3);
  });
});
