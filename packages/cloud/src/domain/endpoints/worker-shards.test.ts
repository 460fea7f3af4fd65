import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workerShardOf } from './worker-shards.ts';

test('the shard of an endpoint is the same at every server and in every version', () => {
  assert.deepEqual(
    ['a1b2c3d4e5f6', 'endpoint1', 'endpoint2', ''].map((id) => workerShardOf(id, 12)),
    [9, 1, 0, 8],
  );
});

test('with one shard, all endpoints are in it', () => {
  for (const id of ['', 'a', 'endpoint1']) assert.equal(workerShardOf(id, 1), 0);
});

test('endpoints are spread evenly', () => {
  for (const shards of [2, 3, 8, 64]) {
    const counts = new Array<number>(shards).fill(0);
    for (let id = 0; id < 1_000 * shards; id += 1) {
      const shard = workerShardOf(`endpoint${id}`, shards);
      counts[shard] = (counts[shard] ?? 0) + 1;
    }
    assert.ok(Math.min(...counts) > 800 && Math.max(...counts) < 1_200, `${shards}: ${counts.join(' ')}`);
  }
});
