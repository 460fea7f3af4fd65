import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { inNewSandbox, TRUSTED_ENVIRONMENT } from './account-command.ts';
import { SandboxView } from './sandbox-view.ts';

const run = promisify(execFile);
const skip = process.platform !== 'linux' || process.getuid?.() !== 0;

describe('a sandbox', { skip }, () => {
  const base = mkdtempSync(join(tmpdir(), 'berth sandbox-'));
  after(() => rmSync(base, { recursive: true }));
  const user = { uid: 60_123, gid: 60_123 };
  const [view, tmp, outside, volume] = ['view', 'tmp', 'outside', 'volume'].map((name) =>
    join(base, name),
  ) as [string, string, string, string];
  for (const path of [view, tmp, outside, volume]) {
    mkdirSync(path);
    chmodSync(path, 0o755);
  }
  const built = new SandboxView(view);
  built.addSystem({ tmp, gpus: false });
  built.bind(volume, '/workspace');
  const fstab = join(base, 'fstab');
  const start = async (mounts: string): Promise<{ code: number; output: string }> => {
    writeFileSync(fstab, mounts);
    const [program, ...args] = inNewSandbox({ fstab, view, cwd: '/tmp', user }, ['ls', '/']);
    try {
      const command = ['-c', 'exec "$@" 4</dev/null', 'sh', program, ...args];
      const { stdout, stderr } = await run('/bin/sh', command, { env: TRUSTED_ENVIRONMENT, cwd: '/' });
      return { code: 0, output: stdout + stderr };
    } catch (error) {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
      return { code, output: stdout + stderr };
    }
  };

  test('starts with mounts below its root', async () => {
    const { code, output } = await start(built.toFstab());
    assert.equal(code, 0, output);
    assert.match(output, /^workspace$/m);
  });

  test('runs nothing if a mount led out of its root', async () => {
    symlinkSync(outside, join(view, 'link'));
    const escape = (path: string): string => path.replaceAll(' ', '\\040');
    const line = `${escape(volume)} ${escape(join(view, 'link'))} none rbind,nosuid,nodev 0 0\n`;
    const { code, output } = await start(built.toFstab() + line);
    assert.equal(code, 125, output);
    assert.match(output, /one of the mounts led out/);
    assert.doesNotMatch(output, /^workspace$/m);
    assert.deepEqual(readdirSync(outside), []);
  });
});
