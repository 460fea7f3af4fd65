import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ManualClock } from '../support/clock.ts';
import { DiskGuard } from './disk-guard.ts';
import type { WritableDisk, GuardedInstance } from './disk-guard.ts';

const GB = 1024 ** 3;
const RESERVE = 64_000_000;

class Writer implements GuardedInstance {
  readonly log: string[] = [];
  measured = 0;
  running = true;
  diskBytes = 0;
  volumeBytes = 0;
  volumeLimitInGb = 20;
  limitInGb: number | undefined = 10;

  readonly id: string;

  constructor(id: string) {
    this.id = id;
  }

  async measureDisk(): Promise<WritableDisk[]> {
    this.measured += 1;
    return [
      { name: 'its container disk', bytes: this.diskBytes, limitInGb: this.limitInGb },
      {
        name: 'the volume at /workspace',
        bytes: this.volumeBytes,
        limitInGb: 20,
        currentLimitInGb: async () => this.volumeLimitInGb,
        lasting: true,
      },
    ];
  }

  async endForSpace(reason: string): Promise<void> {
    this.log.push(reason);
    this.running = false;
  }
}

function fixture(...ids: string[]) {
  const clock = new ManualClock();
  const disk = { disk: 'one', freeBytes: 100e9, totalBytes: 250e9 };
  const writers = ids.map((id) => new Writer(id));
  const ended: string[] = [];
  const guard = new DiskGuard({
    instances: () => writers.filter(({ running }) => running),
    readDisks: async () => [disk],
    reserveBytes: RESERVE,
    now: () => clock.now(),
    onEnded: (id) => void ended.push(id),
    onProblem: (what, error) => assert.fail(`${what}: ${String(error)}`),
  });
  /** Each writer writes so much, and the guard looks. */
  const write = async (...bytes: number[]): Promise<number> => {
    clock.advance(100);
    bytes.forEach((amount, index) => {
      const writer = writers[index];
      if (writer?.running !== true) return;
      writer.diskBytes += amount;
      disk.freeBytes -= amount;
    });
    return guard.check();
  };
  return { clock, disk, writers, ended, guard, write };
}

describe('the disk guard', () => {
  test('ends an instance that has written more than its container disk, and says how much', async () => {
    const { writers, ended, write } = fixture('small', 'large');
    await write(9 * GB, 1 * GB);
    assert.deepEqual(ended, []);
    await write(2 * GB, 0);
    // What it uses is measured again at the latest after a while, or when much space is gone.
    await write(10 * GB, 0);
    assert.deepEqual(ended, ['small']);
    assert.deepEqual(writers[0]?.log, [
      'No space: it has written 22.5 GB to its container disk; the limit is 10 GB.',
    ]);
    assert.equal(writers[1]?.running, true);
  });

  test('measures seldom while the free space stays, and again after some time', async () => {
    const { clock, writers, write } = fixture('idle');
    for (let looks = 0; looks < 50; looks += 1) assert.equal(await write(0), 5_000);
    assert.equal(writers[0]?.measured, 1);
    clock.advance(30_000);
    await write(0);
    assert.equal(writers[0]?.measured, 2);
  });

  test('looks more often the less is free', async () => {
    const { disk, write } = fixture('one');
    assert.equal(await write(0), 5_000);
    disk.freeBytes = 1e9 + RESERVE;
    assert.equal(await write(0), 500);
    disk.freeBytes = RESERVE;
    assert.equal(await write(0), 50);
  });

  test('below the reserve, ends the instance that grew most since there was enough, and no other', async () => {
    const { disk, writers, ended, write } = fixture('old', 'slow', 'fast');
    for (const writer of writers) writer.limitInGb = undefined;
    await write(30 * GB, 0, 0);
    disk.freeBytes = RESERVE + 500e6;
    await write(0, 0, 0);
    await write(0, 100e6, 420e6);
    assert.deepEqual(ended, ['fast']);
    assert.match(
      writers[2]?.log[0] ?? '',
      /^No space: the disk of this machine has 44\.0 MB left, and of all instances this one wrote most of late: 420\.0 MB\.$/,
    );
    disk.freeBytes += 420e6;
    await write(0, 0);
    assert.deepEqual(ended, ['fast']);
    // Where nothing frees space, the next one follows.
    disk.freeBytes = 1_000_000;
    await write(0, 50e6);
    assert.deepEqual(ended, ['fast', 'slow']);
    await write(0);
    assert.deepEqual(ended, ['fast', 'slow'], 'what did not grow did not fill the disk');
  });

  test('ends what fills a volume over its size, but not what finds it full', async () => {
    const { clock, writers, ended, write } = fixture('starts on a full volume');
    const [writer] = writers;
    assert.ok(writer !== undefined);
    writer.volumeBytes = 25 * GB;
    await write(0);
    clock.advance(30_000);
    await write(0);
    assert.deepEqual(ended, []);
    writer.volumeBytes -= 1 * GB;
    clock.advance(30_000);
    await write(0);
    assert.deepEqual(ended, [], 'it can make room');
    writer.volumeBytes += 2 * GB;
    writer.volumeLimitInGb = 40;
    clock.advance(30_000);
    await write(0);
    assert.deepEqual(ended, [], 'the volume has grown');
    writer.volumeLimitInGb = 20;
    clock.advance(30_000);
    await write(0);
    assert.match(writer.log[0] ?? '', /27\.9 GB to the volume at \/workspace; the limit is 20 GB/);
  });

  test('ends early what would fill the disk within a second, and nothing else for its sake', async () => {
    const { disk, writers, ended, write } = fixture('fast', 'slow');
    disk.freeBytes = disk.totalBytes = 600e6;
    await write(0, 0);
    await write(10e6, 2e6);
    assert.deepEqual(ended, [], 'it would take four seconds');
    await write(60e6, 2e6);
    assert.deepEqual(ended, ['fast']);
    assert.match(writers[0]?.log[0] ?? '', /has 526\.0 MB left/);
    // It wrote until its end.
    disk.freeBytes -= 200e6;
    for (let looks = 0; looks < 5; looks += 1) await write(0, 2e6);
    assert.deepEqual(ended, ['fast']);
  });

  test('each disk has its own growers', async () => {
    const clock = new ManualClock();
    const disks = ['daemon', 'volumes'].map((disk) => ({ disk, freeBytes: 10e9, totalBytes: 10e9 }));
    const bytes = { first: [0, 0], second: [0, 0] };
    const ended: string[] = [];
    const instances = Object.entries(bytes).map(([id, written]) => ({
      id,
      measureDisk: async () => [
        { name: 'its container disk', bytes: written[0] ?? 0, limitInGb: undefined },
        { name: 'the volume', bytes: written[1] ?? 0, limitInGb: undefined, disk: 'volumes' },
      ],
      endForSpace: async () => void ended.push(id),
    }));
    const guard = new DiskGuard({
      instances: () => instances.filter(({ id }) => !ended.includes(id)),
      readDisks: async () => disks,
      reserveBytes: RESERVE,
      now: () => clock.now(),
      onEnded: () => undefined,
      onProblem: (what, error) => assert.fail(`${what}: ${String(error)}`),
    });
    await guard.check();
    clock.advance(30_000);
    Object.assign(bytes, { first: bytes.first.fill(5e9, 0, 1), second: bytes.second.fill(1e9, 1) });
    Object.assign(disks[1] ?? {}, { freeBytes: RESERVE - 1 });
    await guard.check();
    assert.deepEqual(ended, ['second']);
  });

  test('measuring a large folder takes no more than a part of the time', async () => {
    const { clock, disk, writers, write } = fixture('one');
    const [writer] = writers;
    assert.ok(writer !== undefined);
    const measure = writer.measureDisk.bind(writer);
    writer.measureDisk = async () => {
      clock.advance(1_000);
      return measure();
    };
    disk.freeBytes = RESERVE + 3e9;
    for (let looks = 0; looks < 100; looks += 1) {
      disk.freeBytes -= 20e6;
      await write(0);
    }
    assert.equal(writer.measured, 1);
    clock.advance(20_000);
    disk.freeBytes -= 200e6;
    await write(0);
    assert.equal(writer.measured, 2);
    // While the reserve is in use, what fills the disk must be known soon.
    disk.freeBytes = RESERVE - 1;
    clock.advance(1_000);
    await write(0);
    assert.equal(writer.measured, 3);
  });
});
