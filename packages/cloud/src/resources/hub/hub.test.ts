import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Hub } from './hub.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-hub-'));
after(() => rmSync(folder, { recursive: true }));

test('a folder with a handler is listed with its README', async () => {
  mkdirSync(join(folder, 'upper'));
  writeFileSync(join(folder, 'upper', 'handler.py'), '');
  writeFileSync(join(folder, 'upper', 'README.md'), '# Upper case\n\nMakes every letter\nlarge.\n\nMore.\n');
  mkdirSync(join(folder, 'no-queue'));
  writeFileSync(join(folder, 'no-queue', 'server.ts'), '');
  writeFileSync(join(folder, 'README.md'), 'a page');
  const hub = new Hub(folder);
  assert.deepEqual(
    (await hub.listings()).map(({ name, title, description, language, image }) => [
      name,
      title,
      description,
      language,
      image,
    ]),
    [['upper', 'Upper case', 'Makes every letter large.', 'Python', 'local/upper']],
  );
  assert.equal((await hub.release('berth-upper'))?.name, 'upper');
  assert.equal(await hub.release('berth-no-queue'), undefined);
});

test('a missing folder lists nothing', async () => {
  assert.deepEqual(await new Hub(join(folder, 'nowhere')).listings(), []);
});

test('the examples that take jobs are listed', async () => {
  const names = (
    await new Hub(fileURLToPath(new URL('../../../../../examples', import.meta.url))).listings()
  ).map(({ name }) => name);
  assert.ok(
    names.includes('echo') &&
      names.includes('streaming') &&
      !names.includes('http-server') &&
      !names.includes('dockerfile'),
    names.join(),
  );
});
