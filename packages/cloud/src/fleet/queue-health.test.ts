import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { Caretaker } from '../jobs/caretaker.ts';
import type { CaretakerParts } from '../jobs/caretaker.ts';
import { Presence, SILENT_MS } from '../jobs/presence.ts';
import type { JobQueue } from '../jobs/queue.ts';
import { StopList } from '../jobs/stop-list.ts';
import type { FleetStore } from '../store/fleet.ts';
import { ManualClock } from '../support/clock.ts';
import { createLog } from '../support/log.ts';
import type { Departures } from './departures.ts';
import type { Member } from './member.ts';
import { QueueHealth } from './queue-health.ts';
import { Roster } from './roster.ts';
import { sampleWorker } from './worker.sample.ts';

const SECOND = 1_000;

describe('a worker of a queue', () => {
  let clock: ManualClock;
  let presence: Presence;
  let stops: StopList;
  /** The time at which another server heard of it. */
  let heardElsewhereAt: number;
  /** How many jobs it had then. */
  let busyElsewhere: number;
  /** It holds a job, as the store knows. */
  let holdsJob: boolean;
  let dismissed: (string | null)[];
  let member: Member;
  let health: QueueHealth;

  beforeEach(() => {
    clock = new ManualClock();
    presence = new Presence(clock);
    stops = new StopList(clock, presence);
    heardElsewhereAt = -SILENT_MS;
    busyElsewhere = 0;
    holdsJob = false;
    dismissed = [];
    const store = {
      workers: async (_endpoint: string, seenSince: number) =>
        heardElsewhereAt >= seenSince
          ? [
              {
                endpointId: 'e',
                workerId: 'w',
                seenAt: heardElsewhereAt,
                busy: busyElsewhere,
                unhealthy: null,
              },
            ]
          : [],
      running: async () => (holdsJob ? [{ workerId: 'w' }] : []),
    };
    const caretaker = new Caretaker({ store, clock, presence } as unknown as CaretakerParts);
    const queue = {
      presence,
      caretaker,
      workers: (endpointId: string) => store.workers(endpointId, clock.now() - SILENT_MS),
      stops,
    } as unknown as JobQueue;
    const roster = new Roster(
      { saveWorker: async () => undefined } as unknown as FleetStore,
      createLog({ level: 'silent', format: 'json' }),
    );
    const departures = {
      dismiss: async (one: Member, reason: string | null) => {
        if (one.record.state === 'leaving') return;
        one.record = { ...one.record, state: 'leaving' };
        dismissed.push(reason);
      },
    } as unknown as Departures;
    member = roster.fleetOf('e').add(sampleWorker('w', { endpointId: 'e' }));
    health = new QueueHealth({ roster, departures, queue });
  });

  /** Looks at it as often as the fleet does. */
  async function pass(seconds: number, meanwhile: () => void = () => undefined): Promise<void> {
    for (let looks = 0; looks < 2 * seconds; looks += 1) {
      clock.advance(SECOND / 2);
      meanwhile();
      await health.check(member, clock.now());
    }
  }

  const ready = (): Promise<void> => pass(1, () => presence.seen('e', 'w'));

  test('that falls silent with nothing to do is let go, and says why', async () => {
    await ready();
    assert.equal(member.record.state, 'ready');
    await pass(29);
    assert.deepEqual([dismissed, member.unhealthy], [[], null]);
    await pass(15);
    assert.deepEqual(dismissed, ['it has not been heard of for 30 s']);
    assert.equal(member.unhealthy, 'it has not been heard of for 30 s');
  });

  test('that has not spoken yet is starting, and is not judged by its silence', async () => {
    await pass(120);
    assert.deepEqual([dismissed, member.record.state], [[], 'starting']);
  });

  test('stays as long as it is heard of, also where it only waits for an answer', async () => {
    await pass(60, () => presence.seen('e', 'w'));
    const leave = presence.enter('e', 'w');
    await pass(60);
    leave();
    assert.deepEqual(dismissed, []);
  });

  test('that speaks to another server alone is ready, busy and idle all the same', async () => {
    const hears = (): number => (heardElsewhereAt = clock.now());
    await pass(6, hears);
    assert.deepEqual([member.record.state, member.busy], ['ready', false]);
    assert.notEqual(member.idleSince, null);
    busyElsewhere = 1;
    await pass(6, hears);
    assert.deepEqual([member.busy, member.idleSince], [true, null]);
    assert.deepEqual(dismissed, []);
  });

  test('stays where another server hears of it', async () => {
    await ready();
    await pass(120, () => (heardElsewhereAt = clock.now()));
    assert.deepEqual(dismissed, []);
    await pass(45);
    assert.equal(dismissed.length, 1);
  });

  test('stays while it holds a job: a handler that never yields keeps it from speaking', async () => {
    await ready();
    holdsJob = true;
    await pass(120);
    assert.deepEqual(dismissed, []);
    holdsJob = false;
    await pass(15);
    assert.equal(dismissed.length, 1);
  });

  test('that goes on with a stopped job is let go, also where it could not be told', async () => {
    await ready();
    stops.add('e', 'w', 'stopped');
    const pings = (): void => {
      presence.lists('e', 'w', ['stopped']);
      stops.listed('e', 'w', ['stopped']);
    };
    await pass(14, pings);
    assert.deepEqual(dismissed, []);
    await pass(3, pings);
    assert.deepEqual(dismissed, ['it went on with a job that was cancelled or had run out of time']);
  });

  test('that goes on with a stopped job and has others is left to finish them as long as it asks for something, and no longer', async () => {
    await ready();
    stops.add('e', 'w', 'stopped');
    presence.given('e', 'w', { seq: 2, id: 'other', lease: null });
    const pings = (): void => stops.listed('e', 'w', ['stopped', 'other']);
    await pass(60, () => {
      presence.asksForWork('e', 'w', false);
      pings();
    });
    assert.deepEqual(dismissed, []);
    stops.add('e', 'w', 'stopped as well');
    const blocked = (): void => {
      presence.seen('e', 'w');
      stops.listed('e', 'w', ['stopped', 'stopped as well', 'other']);
    };
    await pass(29, blocked);
    assert.deepEqual(dismissed, []);
    await pass(3, blocked);
    assert.equal(dismissed.length, 1);
  });

  test('has its time after this server itself was away, or has just started', async () => {
    await ready();
    clock.advance(3600 * SECOND);
    await health.check(member, clock.now());
    presence.awake();
    await pass(29);
    presence.seen('e', 'w');
    await pass(29);
    assert.deepEqual(dismissed, []);
  });
});
