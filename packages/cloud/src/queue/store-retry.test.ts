import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BerthError } from '../support/errors.ts';
import { STORE_RETRY_MS, withStoreRetries } from './store-retry.ts';

describe('work with store retries', () => {
  test('runs once where the store answers', async () => {
    let tries = 0;
    assert.equal(await withStoreRetries(async () => (tries += 1)), 1);
    assert.equal(tries, 1);
  });

  test('is retried with growing pauses until the store answers', async () => {
    const at: number[] = [];
    const answer = await withStoreRetries(async () => {
      at.push(performance.now());
      if (at.length < 4) throw new Error('away');
      return 'kept';
    });
    assert.equal(answer, 'kept');
    const pauses = at.slice(1).map((time, index) => time - (at[index] ?? 0));
    assert.ok((pauses[0] ?? 0) >= 45 && (pauses[1] ?? 0) >= 95 && (pauses[2] ?? 0) >= 195, pauses.join(', '));
  });

  test('fails after the time limit with the last error of the store', async () => {
    let tries = 0;
    const away = async (): Promise<never> => {
      tries += 1;
      throw new Error(`away ${tries}`);
    };
    await assert.rejects(withStoreRetries(away, 200), /^Error: away [23]$/);
    await assert.rejects(withStoreRetries(away, 0), /^Error: away [34]$/);
  });
});

test('a client gets an error at once if writes fail; a worker keeps trying', async () => {
  let tries = 0;
  const refuse = async (): Promise<never> => {
    tries += 1;
    throw new BerthError('unavailable', 'the disk is full', { refusesWrites: true });
  };
  await assert.rejects(withStoreRetries(refuse, STORE_RETRY_MS.client), /full/);
  assert.equal(tries, 1);
  const stored = await withStoreRetries(async () => (tries < 3 ? refuse() : 'stored'), STORE_RETRY_MS.worker);
  assert.deepEqual([stored, tries], ['stored', 3]);
});
