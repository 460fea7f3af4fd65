import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PullProgress } from './pull-progress.ts';

test('the many messages of a pull become a few lines', () => {
  const progress = new PullProgress();
  const lines = [
    { status: 'Pulling from team/image', id: 'v1' },
    { status: 'Pulling fs layer', id: 'a' },
    { status: 'Pulling fs layer', id: 'b' },
    { status: 'Already exists', id: 'c' },
    { status: 'Downloading', id: 'a', progressDetail: { current: 1_000_000, total: 2_000_000 } },
    ...Array.from({ length: 100 }, (_, step) => ({
      status: 'Downloading',
      id: 'b',
      progressDetail: { current: step * 80_000, total: 8_000_000 },
    })),
    { status: 'Download complete', id: 'b' },
    { status: 'Download complete', id: 'a' },
    { status: 'Extracting', id: 'a', progressDetail: { current: 1, total: 2_000_000 } },
    { status: 'Pull complete', id: 'a' },
    { status: 'Pull complete', id: 'b' },
    { status: 'Digest: sha256:00' },
  ].flatMap((message) => progress.update(message) ?? []);
  assert.deepEqual(
    lines.map((line) => Number.parseInt(line, 10)),
    [10, 20, 30, 40, 50, 60, 70, 80, 90, 100],
  );
  assert.equal(lines[0], '10 % of 10.0 MB are here, 1 of 3 layers are unpacked.');
});
