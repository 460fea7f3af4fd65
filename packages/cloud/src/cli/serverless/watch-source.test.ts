import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { watchSourceFolder } from './watch-source.ts';

test('changes are reported one at a time, grouped, until the signal aborts', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-watch-'));
  await mkdir(join(folder, 'lib'));
  const enough = new AbortController();
  let calls = 0;
  let running = 0;
  let told = (): void => undefined;
  const watching = watchSourceFolder(
    folder,
    async () => {
      running += 1;
      assert.equal(running, 1);
      await new Promise((resolve) => setImmediate(resolve));
      calls += 1;
      running -= 1;
      told();
    },
    enough.signal,
  );
  const next = (): Promise<void> => new Promise((resolve) => (told = resolve));
  try {
    for (const file of ['handler.ts', 'lib/deep.ts']) {
      const seen = next();
      // The watch may not stand yet when the first is written, so it is written until it is seen.
      const writing = setInterval(() => void writeFile(join(folder, file), String(calls)), 20);
      await seen;
      clearInterval(writing);
    }
    assert.ok(calls >= 2);
  } finally {
    enough.abort();
    await watching;
    await rm(folder, { recursive: true });
  }
});
