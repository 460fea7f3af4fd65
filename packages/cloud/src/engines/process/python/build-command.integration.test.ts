import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { findInstanceProcesses } from '../instance-processes.ts';
import { buildVariables, runBuildCommand } from './build-command.ts';

const root = mkdtempSync(join(tmpdir(), 'berth-build-'));
after(() => rmSync(root, { recursive: true }));

const sh = (script: string) => ({
  argv: ['/bin/sh', '-c', script] as const,
  cwd: root,
  env: { PATH: '/usr/bin:/bin', BERTH_ROOT: root },
  owner: 'root',
  root,
});
const never = new AbortController().signal;

describe('a command of a build', () => {
  test('gets the settings of pip and uv, and nothing else of the environment of Berth', () => {
    const operator = {
      PATH: '/bin',
      PIP_INDEX_URL: 'https://index.example/simple',
      UV_INDEX_URL: 'https://index.example/simple',
      UV_OFFLINE: '1',
      https_proxy: 'http://proxy',
      SSL_CERT_FILE: '/ca.pem',
      BERTH_MASTER_KEY: 'secret',
      BERTH_ROOT_KEY: 'secret',
      BERTH_DATABASE_URL: 'postgres://secret',
      AWS_SECRET_ACCESS_KEY: 'secret',
      PIP_TARGET: '/elsewhere',
      PIP_USER: '1',
      UV_PROJECT_ENVIRONMENT: '/elsewhere',
      PYTHONPATH: '/elsewhere',
      VIRTUAL_ENV: '/elsewhere',
    };
    assert.deepEqual(buildVariables({ home: '/home', tmp: '/tmp/x', root: '/env' }, operator), {
      PATH: '/bin',
      LANG: 'C.UTF-8',
      HOME: '/home',
      TMPDIR: '/tmp/x',
      BERTH_ROOT: '/env',
      PYTHONUNBUFFERED: '1',
      NO_COLOR: '1',
      PIP_INDEX_URL: 'https://index.example/simple',
      UV_INDEX_URL: 'https://index.example/simple',
      UV_OFFLINE: '1',
      https_proxy: 'http://proxy',
      SSL_CERT_FILE: '/ca.pem',
    });
  });

  test('reports its lines without control characters, and its exit code', async () => {
    const lines: string[] = [];
    const code = await runBuildCommand(
      sh(`printf '\\033[31mred\\033[0m\\n\\n'; echo wrong >&2; exit 3`),
      (line) => lines.push(line),
      never,
    );
    assert.deepEqual([code, lines.sort()], [3, ['red', 'wrong']]);
  });

  test('ends with all its processes when it is cancelled', async () => {
    const cancel = new AbortController();
    const running = runBuildCommand(
      sh('setsid sleep 300 & echo started; sleep 300'),
      () => cancel.abort(new Error('Berth ends')),
      cancel.signal,
    );
    await assert.rejects(running, /Berth ends/);
    assert.deepEqual(findInstanceProcesses({ root, cgroup: null, started: undefined }), []);
  });

  test('that is not there is an error', async () => {
    await assert.rejects(
      runBuildCommand({ ...sh(''), argv: ['/no/such/program'] }, () => undefined, never),
      /ENOENT/,
    );
  });
});
