import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { BERTH_COMMAND } from '../../packages/testing/src/berth-command.ts';
import { createTemporaryFolder } from '../../packages/testing/src/temporary-folder.ts';
import { leftOut } from './required-parts.ts';

const unit = readFileSync(new URL('../../deploy/systemd/berth.service', import.meta.url), 'utf8');
const missing =
  spawnSync('systemd-analyze', ['--version']).error !== undefined &&
  leftOut('systemd-analyze', 'systemd is not installed');

test('systemd reads the service without a complaint', { skip: missing }, () => {
  // The program of this clone instead of the installed one; the rest as it is.
  const installed = unit.replace('/opt/berth/bin/berth', BERTH_COMMAND).replace(/^Documentation=.*\n/m, '');
  const folder = createTemporaryFolder('unit', { 'berth.service': installed });
  try {
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', join(folder.path, 'berth.service')], {
      encoding: 'utf8',
    });
    assert.deepEqual([status, stderr.split('\n').filter((line) => line.includes('berth.service'))], [0, []]);
  } finally {
    folder.remove();
  }
});

test('a stop ends the server alone', () => {
  assert.match(unit, /^KillMode=process$/m);
});
