import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { QuotaLimits } from '../domain/quotas.ts';
import type { RateShare } from '../support/rate-limiter.ts';
import { QueueAdmission } from './queue-admission.ts';
import type { QueueAdmissionDeps } from './queue-admission.ts';

interface Fixture {
  admission: QueueAdmission;
  /** What the store holds. */
  queued: { jobs: number; bytes: number };
  reads: { jobs: number; bytes: number };
  /** Submits, and queues what is admitted. */
  submit(request?: string): Promise<'fine' | string>;
  advance(milliseconds: number): void;
}

function fixture(
  own: QuotaLimits,
  all: QuotaLimits = {},
  share?: () => number | undefined,
  shared?: QueueAdmissionDeps['shared'],
): Fixture {
  let now = 0;
  const queued = { jobs: 0, bytes: 0 };
  const reads = { jobs: 0, bytes: 0 };
  const admission = new QueueAdmission({
    store: {
      queuedJobs: async () => {
        reads.jobs += 1;
        return queued.jobs;
      },
      queuedBytes: async () => {
        reads.bytes += 1;
        return queued.bytes;
      },
    },
    limitsOf: () => own,
    installationLimits: () => all,
    ...(share && { diskShare: share }),
    ...(shared && { shared }),
    now: () => now,
  });
  return {
    admission,
    queued,
    reads,
    submit: async (request = 'x') => {
      try {
        const onStored = await admission.admit('a', request);
        queued.jobs += 1;
        queued.bytes += request.length;
        onStored?.();
      } catch (error) {
        return (error as { limit: { name: string } }).limit.name;
      }
      return 'fine';
    },
    advance: (milliseconds) => (now += milliseconds),
  };
}

describe('what an account may queue', () => {
  test('without limits the store is not asked', () => {
    const { admission, reads } = fixture({ pods: 1 });
    assert.equal(admission.admit('a', 'x'), undefined);
    assert.deepEqual(reads, { jobs: 0, bytes: 0 });
  });

  test('jobs that come together do not exceed the limit', async () => {
    const on = fixture({ queuedJobs: 10 });
    const answers = await Promise.all(Array.from({ length: 50 }, () => on.submit()));
    assert.equal(answers.filter((answer) => answer === 'fine').length, 10);
    assert.ok(answers.every((answer) => answer === 'fine' || answer === 'queuedJobs'));
    assert.ok(on.reads.jobs <= 2, `${on.reads.jobs} reads`);
  });

  test('jobs that are stored while the store counts are counted once, whether it saw them or not', async () => {
    for (const seen of [true, false]) {
      const on = fixture({ queuedJobs: 3 });
      assert.equal(await on.submit(), 'fine');
      const onStored = await on.admission.admit('a', 'x');
      on.advance(1_000);
      if (seen) on.queued.jobs += 1;
      const third = on.submit();
      if (!seen) on.queued.jobs += 1;
      onStored?.();
      assert.deepEqual([await third, await on.submit()], ['fine', 'queuedJobs'], `seen: ${seen}`);
    }
  });

  test('jobs that have left the queue make room within moments, and old counts are read again', async () => {
    const on = fixture({ queuedJobs: 2 });
    assert.deepEqual(
      [await on.submit(), await on.submit(), await on.submit()],
      ['fine', 'fine', 'queuedJobs'],
    );
    on.queued.jobs = 0;
    on.advance(100);
    assert.equal(await on.submit(), 'fine');
    on.queued.jobs = 2;
    on.advance(1_000);
    assert.equal(await on.submit(), 'queuedJobs');
  });

  test('bytes are counted again when they seem to be too many', async () => {
    const on = fixture({ queuedBytes: 100 });
    assert.equal(await on.submit('x'.repeat(60)), 'fine');
    assert.equal(await on.submit('x'.repeat(60)), 'queuedBytes');
    assert.equal(await on.submit('x'.repeat(40)), 'fine');
    on.queued.jobs = 1;
    on.queued.bytes = 40;
    on.advance(1_000);
    assert.equal(await on.submit('x'.repeat(60)), 'fine');
  });

  test('jobs that are not in the store yet count', async () => {
    const on = fixture({ queuedJobs: 3 });
    const onStored = [];
    for (let job = 0; job < 3; job += 1) onStored.push(await on.admission.admit('a', 'x'));
    on.advance(1_000);
    assert.equal(await on.submit(), 'queuedJobs');
    // They could not be stored.
    for (const release of onStored) release?.();
    on.advance(100);
    assert.equal(await on.submit(), 'fine');
  });

  test('while the disk is nearly full, an account has no more than its share in its queues', async () => {
    const disk: { share?: number } = {};
    const on = fixture({}, {}, () => disk.share);
    assert.equal(await on.submit('x'.repeat(1_000)), 'fine');
    disk.share = 500;
    assert.equal(await on.submit(), 'queuedBytes');
    on.queued.jobs = 0;
    on.queued.bytes = 0;
    on.advance(100);
    assert.equal(await on.submit(), 'fine');
  });

  test('what other servers accept counts until the store is read again', async () => {
    const published: [string, number | undefined][] = [];
    let tell = (_key: string, _jobs: number): void => undefined;
    const jobs: RateShare = {
      publish: (key, amount) => void published.push([key, amount]),
      subscribe: (add) => (tell = add),
    };
    const bytes: RateShare = {
      publish: (key, amount) => void published.push([key, amount]),
      subscribe: () => undefined,
    };
    const on = fixture({ queuedJobs: 5 }, {}, undefined, { jobs, bytes });
    assert.equal(await on.submit('xyz'), 'fine');
    assert.deepEqual(published, [
      ['a', undefined],
      ['a', 3],
    ]);
    tell('a', 4);
    assert.equal(await on.submit(), 'queuedJobs');
    on.advance(100);
    assert.equal(await on.submit(), 'fine');
  });

  test('the limit of the installation counts too', async () => {
    const on = fixture({}, { queuedJobs: 1 });
    assert.deepEqual([await on.submit(), await on.submit()], ['fine', 'queuedJobs']);
  });
});
