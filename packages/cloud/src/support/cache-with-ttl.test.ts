import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ManualClock } from './clock.ts';
import { cacheWithTtl } from './cache-with-ttl.ts';

const LIFETIME = 60_000;

describe('cacheWithTtl', () => {
  test('reads on first use, caches, and reads again after the TTL', async () => {
    const clock = new ManualClock();
    let count = 0;
    const read = cacheWithTtl(() => Promise.resolve((count += 1)), LIFETIME, clock);
    assert.equal(count, 0);
    assert.equal(await read(), 1);
    clock.advance(LIFETIME - 1);
    assert.equal(await read(), 1);
    clock.advance(1);
    assert.equal(await read(), 2);
  });

  test('shares one reading between concurrent callers', async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    let count = 0;
    const read = cacheWithTtl(
      () => {
        count += 1;
        return promise;
      },
      LIFETIME,
      new ManualClock(),
    );
    const both = Promise.all([read(), read()]);
    resolve('done');
    assert.deepEqual([await both, count], [['done', 'done'], 1]);
  });

  test('reads again after a failure', async () => {
    let count = 0;
    const read = cacheWithTtl(
      () => {
        count += 1;
        return count === 1 ? Promise.reject(new Error('not now')) : Promise.resolve(count);
      },
      LIFETIME,
      new ManualClock(),
    );
    await assert.rejects(read(), /not now/);
    assert.equal(await read(), 2);
  });
});
