import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { createTemporaryFolder } from '../../packages/testing/src/temporary-folder.ts';
import { ACTIONLINT, goProgram } from './go-program.ts';

const execute = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const actionlint = await goProgram(ACTIONLINT.name, ACTIONLINT.module);
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };

interface Workflow {
  jobs: Record<string, { steps: { name?: string; run?: string }[] }>;
}

describe('the workflows', () => {
  test('actionlint finds nothing', { skip: 'reason' in actionlint && actionlint.reason }, async () => {
    const files = ['ci.yml', 'release.yml'].map((name) => join(root, '.github/workflows', name));
    await execute('path' in actionlint ? actionlint.path : '', [
      '-shellcheck=',
      '-pyflakes=',
      ...files,
    ]).catch((error: { stdout: string }) => assert.fail(error.stdout));
  });

  test('a release is refused unless its tag is the version of every package, chart and image', async () => {
    const { jobs } = parse(readFileSync(join(root, '.github/workflows/release.yml'), 'utf8')) as Workflow;
    const script = jobs['check']?.steps.find(({ name }) => name?.startsWith('The tag is'))?.run ?? '';
    const check = (tag: string): Promise<unknown> =>
      execute('bash', ['-ec', script], { cwd: root, env: { ...process.env, GITHUB_REF_NAME: tag } });
    await check(`v${version}`);
    await assert.rejects(check('v999.0.0'), { stdout: 'package.json is not 999.0.0\n' });
  });
});

test('the offline bundle has Berth, its runner with Python and all images of compose.yaml', async () => {
  const folder = createTemporaryFolder('bundle', {
    docker: '#!/bin/sh\nif [ "$1" = save ]; then echo "$4" >"$3"; fi\n',
  });
  try {
    await execute('chmod', ['+x', join(folder.path, 'docker')]);
    const archive = join(folder.path, 'bundle.tar.gz');
    const env = { ...process.env, PATH: `${folder.path}:${process.env['PATH']}` };
    await execute(join(root, 'deploy/offline/bundle.sh'), [archive], { env });
    const { stdout } = await execute('tar', ['-xzOf', archive, 'berth-offline/images/list']);
    const images = stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' ')[0] ?? '');
    const compose = readFileSync(join(root, 'deploy/compose.yaml'), 'utf8');
    const inCompose = [...compose.matchAll(/_IMAGE:-([^}]+)\}/g)].map(([, image = '']) => image);
    assert.ok(inCompose.length >= 3);
    const runner = `ghcr.io/berth-cloud/runner-python:${version}`;
    assert.deepEqual(images.toSorted(), [...new Set(inCompose), runner].toSorted());
  } finally {
    folder.remove();
  }
});
