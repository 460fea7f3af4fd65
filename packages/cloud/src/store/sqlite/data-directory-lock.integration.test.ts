import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { DataDirectoryLocked, lockDataDirectory } from './data-directory-lock.ts';

const holding =
  'const { lockDataDirectory } = await import(process.argv[1]); lockDataDirectory(process.argv[2]); ' +
  `process.stdout.write('held'); setInterval(() => undefined, 1000);`;

describe('the lock of a data directory', () => {
  let data: string;
  beforeEach(() => {
    data = mkdtempSync(join(tmpdir(), 'berth-lock-'));
  });
  afterEach(() => rmSync(data, { recursive: true }));

  test('is held by one at a time and can be handed on', () => {
    const first = lockDataDirectory(data);
    assert.throws(() => lockDataDirectory(data), DataDirectoryLocked);
    first.release();
    lockDataDirectory(data).release();
  });

  test('names the process that holds it and what to do', () => {
    const lock = lockDataDirectory(data);
    assert.throws(
      () => lockDataDirectory(data),
      (error) =>
        error instanceof DataDirectoryLocked &&
        error.message.includes(data) &&
        error.message.includes('--data'),
    );
    writeFileSync(join(data, 'server.json'), JSON.stringify({ pid: 4711, url: 'http://127.0.0.1:8484' }));
    assert.throws(() => lockDataDirectory(data), /process 4711, http:\/\/127\.0\.0\.1:8484/);
    writeFileSync(join(data, 'server.json'), 'half');
    assert.throws(() => lockDataDirectory(data), DataDirectoryLocked);
    lock.release();
  });

  test('ends with its process, however that ends', async () => {
    const child = spawn(
      process.execPath,
      ['--input-type=module', '-e', holding, new URL('./data-directory-lock.ts', import.meta.url).href, data],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const exited = once(child, 'exit');
    await once(child.stdout, 'data');
    assert.throws(() => lockDataDirectory(data), DataDirectoryLocked);
    child.kill('SIGKILL');
    await exited;
    lockDataDirectory(data).release();
  });

  test('of a folder that cannot be written is a fault of its own', () => {
    assert.throws(
      () => lockDataDirectory(join(data, 'missing')),
      (error) => !(error instanceof DataDirectoryLocked),
    );
  });
});
