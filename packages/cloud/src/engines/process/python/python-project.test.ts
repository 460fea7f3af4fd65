import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { createTemporaryFolder } from '../../../../../testing/src/temporary-folder.ts';
import { dependencyFiles, readPythonProject, type PythonProject } from './python-project.ts';

const cleanUp: (() => void)[] = [];
after(() => cleanUp.forEach((remove) => remove()));

function read(files: Record<string, string>): PythonProject | undefined {
  const folder = createTemporaryFolder('app', { 'handler.py': '', ...files });
  cleanUp.push(() => folder.remove());
  return readPythonProject('local/app', folder.path);
}

const PROJECT = '[project]\nname = "app"\nversion = "1"\n';

describe('the Python environment of a folder', () => {
  test('is needed for dependencies, or for a Python version', () => {
    assert.equal(read({}), undefined);
    assert.deepEqual(read({ 'requirements.txt': 'numpy\n' })?.dependencies, { file: 'requirements.txt' });
    assert.deepEqual(read({ 'pyproject.toml': PROJECT })?.dependencies, {
      file: 'pyproject.toml',
      isPackage: false,
    });
    const versionOnly = read({ '.python-version': '3.12\n' });
    assert.deepEqual(
      [versionOnly?.dependencies, versionOnly?.version],
      [null, { wanted: '3.12', source: '.python-version' }],
    );
  });

  test('is not needed for a pyproject.toml that configures tools only, and berth.json turns it off', () => {
    assert.equal(read({ 'pyproject.toml': '[tool.ruff]\nline-length = 100\n' }), undefined);
    assert.equal(read({ 'requirements.txt': 'numpy', 'berth.json': '{"python": false}' }), undefined);
  });

  test('follows requirements.txt where there is a pyproject.toml too', () => {
    assert.deepEqual(read({ 'requirements.txt': '', 'pyproject.toml': PROJECT })?.dependencies, {
      file: 'requirements.txt',
    });
  });

  test('holds the project itself if that says how it is built', () => {
    const project = read({ 'pyproject.toml': `${PROJECT}[build-system]\nrequires = []\n` });
    assert.deepEqual(
      [project?.dependencies, project?.installsOwnFiles],
      [{ file: 'pyproject.toml', isPackage: true }, true],
    );
  });

  test('depends on the whole folder where requirements.txt names files of it', () => {
    for (const line of ['.', './lib', '-e .', 'lib/', 'lib @ file:///x', '--find-links wheels', '.[gpu]'])
      assert.equal(read({ 'requirements.txt': `numpy\n${line}\n` })?.installsOwnFiles, true, line);
    for (const line of [
      'numpy==1.0 # see docs/x',
      '--index-url https://example.com/simple',
      '--find-links https://example.com/wheels',
      'lib @ https://example.com/lib.whl',
      '-r more.txt',
      '# ./lib',
    ])
      assert.equal(read({ 'requirements.txt': `${line}\n` })?.installsOwnFiles, false, line);
  });

  test('is named by its dependency files, with those that they include, and by no other file', async () => {
    const project = read({
      'requirements.txt': '-r more/a.txt\n--constraint=limits.txt\n-r ../outside.txt\nnumpy\n',
      'more/a.txt': '-r b.txt\n',
      'more/b.txt': '-r a.txt\n',
      'limits.txt': 'numpy<3\n',
      'other.txt': '',
    }) as PythonProject;
    assert.deepEqual((await dependencyFiles(project)).map(({ path }) => path).sort(), [
      'limits.txt',
      'more/a.txt',
      'more/b.txt',
      'requirements.txt',
    ]);
    const whole = read({ 'requirements.txt': '.\n', 'lib/a.py': 'A = 1\n' }) as PythonProject;
    assert.deepEqual(
      (await dependencyFiles(whole)).map(({ path }) => path),
      ['handler.py', 'lib/a.py', 'requirements.txt'],
    );
  });

  test('takes the version from berth.json before .python-version', () => {
    const files = { '.python-version': '# ours\n\n3.11.7\n', 'requirements.txt': '' };
    assert.equal(read(files)?.version?.wanted, '3.11.7');
    assert.deepEqual(read({ ...files, 'berth.json': '{"python": "3.12"}' })?.version, {
      wanted: '3.12',
      source: 'berth.json',
    });
    assert.equal(read({ '.python-version': 'system\n', 'requirements.txt': '' })?.version, null);
  });

  test('is refused for what is no version', () => {
    assert.throws(
      () => read({ '.python-version': 'pypy3.10\n' }),
      /says "pypy3.10"; allowed: a version such/,
    );
    assert.throws(
      () => read({ 'berth.json': '{"python": 3.12}' }),
      /has 3.12 as "python"; allowed: a version/,
    );
    assert.throws(() => read({ 'berth.json': '[]' }), /is not an object/);
  });
});
