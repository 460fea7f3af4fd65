import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { run, test } from 'node:test';
import { endLeftoverProcesses } from './leftover-processes.mjs';

test('a process that a test leaves behind does not keep the run from its end', async (t) => {
  if (process.platform !== 'linux') return t.skip('processes are found in /proc');
  const folder = mkdtempSync(join(tmpdir(), 'berth-leftover-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'leaves-a-process.test.mjs');
  writeFileSync(
    file,
    `import { spawn } from 'node:child_process';
     import { test } from 'node:test';
     test('leaves a process', () => spawn('sleep', ['3600'], { stdio: 'inherit', detached: true }).unref());`,
  );
  const said: string[] = [];
  const stop = endLeftoverProcesses((line) => said.push(line), { lookEveryMs: 50, graceMs: 0 });
  t.after(stop);
  // Within a test, Node's runner starts no files unless this variable is unset.
  const context = process.env['NODE_TEST_CONTEXT'];
  delete process.env['NODE_TEST_CONTEXT'];
  const execArgv = ['--import', resolve('scripts/mark-test-process.mjs')];
  const events = run({ files: [file], execArgv });
  if (context !== undefined) process.env['NODE_TEST_CONTEXT'] = context;
  const passed: string[] = [];
  for await (const { type, data } of events) if (type === 'test:pass') passed.push(data.name);
  assert.deepEqual(passed, ['leaves a process']);
  assert.deepEqual(said, ['a test left a process behind, which was ended: sleep 3600\n']);
});
