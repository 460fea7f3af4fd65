import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { withStoreRetries } from './store-retry.ts';

describe('work that must reach the store', () => {
  test('is done once where the store answers', async () => {
    let tries = 0;
    assert.equal(await withStoreRetries(async () => (tries += 1)), 1);
    assert.equal(tries, 1);
  });

  test('is tried again, with longer and longer pauses, until the store answers', async () => {
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

  test('is given up when patience ends, with what the store last said', async () => {
    let tries = 0;
    const away = async (): Promise<never> => {
      tries += 1;
      throw new Error(`away ${tries}`);
    };
    await assert.rejects(withStoreRetries(away, 200), /^Error: away [23]$/);
    await assert.rejects(withStoreRetries(away, 0), /^Error: away [34]$/);
  });
});
