import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { run, test } from 'node:test';
import type { TestContext } from 'node:test';
import { endLeftoverProcesses } from './leftover-processes.mjs';

/** Runs one test file with Node's runner; its time limit does not end it. */
async function runFile(
  t: TestContext,
  text: string,
  times: { checkIntervalMs: number; graceMs?: number; fileLimitMs?: number },
): Promise<{ passed: string[]; failed: string[]; said: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-leftover-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'one.test.mjs');
  writeFileSync(file, text);
  const said: string[] = [];
  t.after(endLeftoverProcesses((line) => said.push(line), times));
  // Within a test, Node's runner starts no files unless this variable is unset.
  const context = process.env['NODE_TEST_CONTEXT'];
  delete process.env['NODE_TEST_CONTEXT'];
  const events = run({
    files: [file],
    timeout: 500,
    execArgv: ['--import', resolve('scripts/mark-test-process.mjs')],
  });
  if (context !== undefined) process.env['NODE_TEST_CONTEXT'] = context;
  const passed: string[] = [];
  const failed: string[] = [];
  for await (const { type, data } of events) {
    if (type === 'test:pass') passed.push(data.name);
    if (type === 'test:fail') failed.push(data.name);
  }
  return { passed, failed, said };
}

const linuxOnly = { skip: process.platform !== 'linux' && 'processes are found in /proc' };

test('a process that a test leaves behind does not keep the run from its end', linuxOnly, async (t) => {
  const { passed, said } = await runFile(
    t,
    `import { spawn } from 'node:child_process';
     import { test } from 'node:test';
     test('leaves a process', () => spawn('sleep', ['3600'], { stdio: 'inherit', detached: true }).unref());`,
    { checkIntervalMs: 50, graceMs: 0 },
  );
  assert.deepEqual(passed, ['leaves a process']);
  assert.deepEqual(said, ['a test left a process behind, which was ended: sleep 3600\n']);
});

test('a test file that never ends is ended', linuxOnly, async (t) => {
  const { failed, said } = await runFile(
    t,
    `import { spawn } from 'node:child_process';
     import { test } from 'node:test';
     test('does not stop what it started', () => {
       spawn('sleep', ['3600']);
     });`,
    { checkIntervalMs: 50, graceMs: 0, fileLimitMs: 1_000 },
  );
  assert.equal(failed.length, 1, 'the file has failed');
  assert.match(said[0] ?? '', /a test file did not end in time.*one\.test\.mjs/);
});
