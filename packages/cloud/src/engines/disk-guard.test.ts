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
  isLogFull = false;

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

  async logSystemLine(line: string): Promise<void> {
    if (this.isLogFull) throw new Error('ENOSPC');
    this.log.push(line);
  }

  async stop(): Promise<void> {
    this.running = false;
    this.isLogFull = false;
  }
}

function stage(...ids: string[]) {
  const clock = new ManualClock();
  const disk = { freeBytes: 100e9, totalBytes: 250e9 };
  const writers = ids.map((id) => new Writer(id));
  const ended: string[] = [];
  const guard = new DiskGuard({
    instances: () => writers.filter(({ running }) => running),
    readDisk: async () => disk,
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
    const { writers, ended, write } = stage('small', 'large');
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
    const { clock, writers, write } = stage('idle');
    for (let looks = 0; looks < 50; looks += 1) assert.equal(await write(0), 5_000);
    assert.equal(writers[0]?.measured, 1);
    clock.advance(30_000);
    await write(0);
    assert.equal(writers[0]?.measured, 2);
  });

  test('looks more often the less is free', async () => {
    const { disk, write } = stage('one');
    assert.equal(await write(0), 5_000);
    disk.freeBytes = 1e9 + RESERVE;
    assert.equal(await write(0), 1_000);
    disk.freeBytes = RESERVE;
    assert.equal(await write(0), 100);
  });

  test('below the reserve, ends the instance that grew most since there was enough, and no other', async () => {
    const { disk, writers, ended, write } = stage('old', 'slow', 'fast');
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
    const { clock, writers, ended, write } = stage('starts on a full volume');
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

  test('the reason is in the log also where the disk is too full to write it at first', async () => {
    const { writers, write } = stage('one');
    const [writer] = writers;
    assert.ok(writer !== undefined);
    writer.isLogFull = true;
    await write(11 * GB);
    assert.equal(writer.log.length, 1);
  });

  test('measuring a large folder takes no more than a part of the time', async () => {
    const { clock, disk, writers, write } = stage('one');
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
