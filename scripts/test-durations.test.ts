import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { longestFirst, slowestFiles } from './test-durations.mjs';

test('files start in the order of what they take, and those not measured by their kind', () => {
  const files = ['packages/new/src/a.test.ts', 'tests/new.test.ts', 'tests/console/new.test.ts'];
  assert.deepEqual(longestFirst(files), files.toReversed());
});

test('the slowest files are shown with their processor time', () => {
  const table = slowestFiles(
    new Map([
      ['tests/quick.test.ts', { seconds: 0.5, cpuSeconds: 0.25 }],
      ['tests/killed.test.ts', { seconds: 400 }],
    ]),
  );
  assert.match(table, /the slowest of 2 files, which took 0 s of processor time/);
  assert.match(table, / {4}400\.0 {11}tests\/killed\.test\.ts\n {6}0\.5 {6}0\.3 {2}tests\/quick\.test\.ts/);
});

test('the processor time of a process includes that of its children', {
  skip: process.platform !== 'linux',
}, () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-durations-'));
  try {
    const usage = join(folder, 'usage');
    const program = `
      const { execFileSync } = await import('node:child_process');
      execFileSync(process.execPath, ['-e', 'while (process.cpuUsage().user < 100_000);']);
      const { writeProcessorTime } = await import(${JSON.stringify(import.meta.resolve('./test-durations.mjs'))});
      writeProcessorTime(${JSON.stringify(usage)}, 'tests/some.test.ts');`;
    execFileSync(process.execPath, ['--input-type=module', '-e', program]);
    const [file, seconds] = readFileSync(usage, 'utf8').trim().split('\t');
    assert.equal(file, 'tests/some.test.ts');
    assert.ok(Number(seconds) >= 0.1, seconds);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
