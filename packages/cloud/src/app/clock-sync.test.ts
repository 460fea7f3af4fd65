import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ClockStore, SharedTime } from '../store/clock-store.ts';
import { SteadyClock } from '../support/steady-clock.ts';
import { MachineClockSync } from './machine-clock-sync.ts';
import { SharedClockSync } from './shared-clock-sync.ts';

const HOUR_MS = 3_600_000;
const NEAR_MS = 1_000;

/** Machines that share one true time; the clock of each can be set. */
class World {
  passed = 0;
  shared: SharedTime | undefined;
  databaseStep = 0;
  /** How long its answers take. */
  roundTrip = 0;
  readonly #start = Date.UTC(2026, 0, 1);

  machine(): { source: { now(): number; monotonic(): number }; step: number } {
    const machine = {
      step: 0,
      source: { now: () => this.#start + this.passed + machine.step, monotonic: () => this.passed },
    };
    return machine;
  }

  get trueTime(): number {
    return this.#start + this.passed;
  }

  readonly database: ClockStore = {
    databaseTime: async () => {
      const now = this.trueTime + this.databaseStep;
      this.passed += this.roundTrip;
      return { now, shared: this.shared };
    },
    saveShared: async (shared) => void (this.shared = shared),
    moveDueTimes: async () => false,
    moveJobsOf: async () => undefined,
  };
}

function recordingLog(): {
  warn: (fields: object, text: string) => void;
  info: () => void;
  warnings: string[];
} {
  const warnings: string[] = [];
  return { warnings, info: () => undefined, warn: (_fields, text) => void warnings.push(text) };
}

function sharedServer(
  world: World,
  step = 0,
): {
  clock: SteadyClock;
  clockSync: SharedClockSync;
  machine: { step: number };
  warnings: string[];
} {
  const machine = world.machine();
  machine.step = step;
  const clock = new SteadyClock(machine.source);
  const log = recordingLog();
  const clockSync = new SharedClockSync({ clock, store: { clock: world.database }, log: log as never });
  return { clock, clockSync, machine, warnings: log.warnings };
}

async function pass(world: World, seconds: number, clockSyncs: { tick(): Promise<void> }[]): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    world.passed += 1_000;
    for (const clockSync of clockSyncs) await clockSync.tick();
  }
}

test('servers agree on the time while the database clock is set, also one that joins later', async () => {
  const world = new World();
  const [leader, follower] = [sharedServer(world), sharedServer(world)];
  leader.clockSync.isLeading = true;
  for (const { clockSync } of [leader, follower]) await clockSync.restore();
  await pass(world, 30, [leader.clockSync, follower.clockSync]);
  world.databaseStep = HOUR_MS;
  await pass(world, 120, [leader.clockSync, follower.clockSync]);
  assert.ok(leader.warnings.some((text) => text.includes('the database was set ahead by 3600 s')));
  const joined = sharedServer(world);
  await joined.clockSync.restore();
  await pass(world, 60, [leader.clockSync, follower.clockSync, joined.clockSync]);
  for (const { clock } of [leader, follower, joined])
    assert.ok(Math.abs(clock.now() - world.trueTime) < NEAR_MS, String(clock.now() - world.trueTime));

  // The leader restarts alone and continues where it was.
  const again = sharedServer(world);
  await again.clockSync.restore();
  assert.ok(Math.abs(again.clock.now() - world.trueTime) < NEAR_MS);
});

test('a starting server takes the time of the database, however slowly that answers', async () => {
  const world = new World();
  world.roundTrip = 4_000;
  const { clock, clockSync } = sharedServer(world, HOUR_MS);
  await clockSync.restore();
  assert.ok(Math.abs(clock.now() - world.trueTime) <= world.roundTrip);
});

test('the clock of one server is set: it is logged, and its time agrees with the others', async () => {
  const world = new World();
  const [leader, follower] = [sharedServer(world), sharedServer(world)];
  leader.clockSync.isLeading = true;
  for (const { clockSync } of [leader, follower]) await clockSync.restore();
  follower.machine.step = -HOUR_MS;
  await pass(world, 60, [leader.clockSync, follower.clockSync]);
  assert.deepEqual(
    follower.warnings.map((text) => text.split(';')[0]),
    ['the clock of this machine was set back by 3600 s'],
  );
  assert.ok(Math.abs(follower.clock.now() - world.trueTime) < NEAR_MS);
  assert.equal(follower.clock.wall(), world.trueTime - HOUR_MS);
});

test('a server that differs from the leading one for long takes its time', async () => {
  const world = new World();
  const [leader, follower] = [sharedServer(world), sharedServer(world)];
  leader.clockSync.isLeading = true;
  for (const { clockSync } of [leader, follower]) await clockSync.restore();
  follower.clock.set(world.trueTime + HOUR_MS);
  await pass(world, 30, [leader.clockSync, follower.clockSync]);
  assert.ok(Math.abs(follower.clock.now() - world.trueTime) < NEAR_MS);
});

test('without a leading server each keeps its own time when the database clock is set', async () => {
  const world = new World();
  const [one, other] = [sharedServer(world), sharedServer(world)];
  for (const { clockSync } of [one, other]) await clockSync.restore();
  world.databaseStep = -HOUR_MS;
  await pass(world, 60, [one.clockSync, other.clockSync]);
  for (const { clock } of [one, other]) assert.equal(clock.now(), world.trueTime);
});

test('a machine whose clock is set: time is held over a restart, and set when nothing runs or waits', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-clock-'));
  try {
    const file = join(folder, 'clock.json');
    const world = new World();
    const machine = world.machine();
    let moved: number | undefined;
    let idle = false;
    const store = {
      clock: {
        ...world.database,
        moveDueTimes: async (by: number, onMoved: () => void) => {
          if (!idle) return false;
          moved = by;
          onMoved();
          return true;
        },
      },
    };
    const boot = { uptime: () => world.passed + 7, boot: () => 'boot 1' };
    const start = async (
      machineStart = boot,
    ): Promise<{ clock: SteadyClock; clockSync: MachineClockSync }> => {
      const clock = new SteadyClock(machine.source);
      const log = recordingLog() as never;
      const clockSync = new MachineClockSync({ clock, store, log, file, machine: machineStart });
      await clockSync.restore();
      return { clock, clockSync };
    };
    const before = await start();
    await pass(world, 5, [before.clockSync]);
    machine.step = HOUR_MS;
    await pass(world, 5, [before.clockSync]);
    assert.ok(Math.abs(before.clock.now() - world.trueTime) < NEAR_MS);

    world.passed += 60_000;
    const restarted = await start();
    assert.ok(Math.abs(restarted.clock.now() - world.trueTime) < NEAR_MS);
    idle = true;
    await pass(world, 10, [restarted.clockSync]);
    assert.ok(Math.abs((moved ?? 0) - HOUR_MS) < NEAR_MS);
    assert.equal(restarted.clock.now(), restarted.clock.wall());

    // The clock is set while the server is down.
    idle = false;
    await pass(world, 5, [restarted.clockSync]);
    world.passed += 30_000;
    machine.step = -HOUR_MS;
    const meanwhile = restarted.clock.now();
    const afterStep = await start();
    assert.ok(Math.abs(afterStep.clock.now() - meanwhile) < NEAR_MS);

    // After a restart of the machine nothing says what its clock was before.
    machine.step = 2 * HOUR_MS;
    await pass(world, 5, [afterStep.clockSync]);
    const later = await start({ ...boot, boot: () => 'boot 2' });
    assert.equal(later.clock.now(), later.clock.wall());
  } finally {
    rmSync(folder, { recursive: true });
  }
});
