import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createTemporaryFolder } from '../../../../../testing/src/temporary-folder.ts';
import { packEnvironment, unpackEnvironment } from './environment-archives.ts';

const SCRIPT = fileURLToPath(new URL('relocate-environment.py', import.meta.url));
const PACKAGES = 'lib/python3.13/site-packages';

test('an environment names the folder where it is unpacked, wherever it named the one where it was built', async () => {
  const built = createTemporaryFolder('built', { 'pyvenv.cfg': '' });
  const outside = createTemporaryFolder('outside', { file: built.path });
  const unpacked = createTemporaryFolder('unpacked', { empty: '' });
  try {
    built.write({
      'pyvenv.cfg': `command = python3 -m venv ${built.path}\n`,
      'bin/tool': `#!${built.path}/bin/python3\n`,
      'bin/program': `\0${built.path}`,
      [`${PACKAGES}/own.pth`]: `${built.path}/source\n`,
      [`${PACKAGES}/own/__init__.py`]: `${built.path}\n`,
      'pycache/compiled.pyc': '',
      'tmp/rest': '',
    });
    symlinkSync('/usr/bin/python3', join(built.path, 'bin/python3'));
    symlinkSync(join(outside.path, 'file'), join(built.path, 'bin/link'));
    const folder = join(unpacked.path, 'environment');
    mkdirSync(folder);
    assert.equal(await unpackEnvironment(folder, packEnvironment(built.path)), built.path);
    execFileSync('python3', ['-I', SCRIPT, built.path, folder]);
    const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
    assert.equal(read('pyvenv.cfg'), `command = python3 -m venv ${folder}\n`);
    assert.equal(read('bin/tool'), `#!${folder}/bin/python3\n`);
    assert.equal(read(`${PACKAGES}/own.pth`), `${folder}/source\n`);
    assert.equal(read(`${PACKAGES}/own/__init__.py`), `${built.path}\n`, 'code is left as it is');
    assert.equal(read('bin/program'), `\0${built.path}`, 'programs are left as they are');
    assert.equal(readFileSync(join(outside.path, 'file'), 'utf8'), built.path, 'links are not followed');
    assert.deepEqual(readdirSync(folder).sort(), ['bin', 'lib', 'pyvenv.cfg']);
    assert.ok(existsSync(join(folder, 'bin/python3')));
  } finally {
    for (const each of [built, outside, unpacked]) each.remove();
  }
});
