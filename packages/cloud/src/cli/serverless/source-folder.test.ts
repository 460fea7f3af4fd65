import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { localImageNameFindings } from '../../domain/images/local-image-names.ts';
import { CliError } from '../cli.errors.ts';
import { imageNameFor, readSourceFolder } from './source-folder.ts';

describe('a folder to deploy', () => {
  let folder = '';
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-folder-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function put(path: string, content = '', mode = 0o644): Promise<void> {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content, { mode });
  }
  const paths = async (): Promise<string[]> => (await readSourceFolder(folder)).files.map(({ path }) => path);

  test('is read completely, without .git', async () => {
    await put('handler.ts', 'export default 1');
    await put('lib/x.sh', '#!/bin/sh', 0o755);
    await put('node_modules/a/index.js');
    await put('.git/HEAD');
    await put('lib/.git/HEAD');
    const { files, size } = await readSourceFolder(folder);
    assert.deepEqual(
      files.map(({ path, executable }) => [path, executable]),
      [
        ['handler.ts', false],
        ['lib/x.sh', true],
        ['node_modules/a/index.js', false],
      ],
    );
    assert.equal(size, 25);
  });

  test('leaves out what .berthignore names, or else .gitignore', async () => {
    await put('handler.js');
    await put('node_modules/a/index.js');
    await put('notes/x.md');
    await put('.gitignore', 'node_modules/\n');
    assert.deepEqual(await paths(), ['.gitignore', 'handler.js', 'notes/x.md']);
    await put('.berthignore', 'notes\n.*ignore\n');
    assert.deepEqual(await paths(), ['handler.js', 'node_modules/a/index.js']);
  });

  test('follows links to its own files and no others', async () => {
    await put('handler.py', 'x');
    await put('bin/tool', 'tool', 0o755);
    await symlink('bin/tool', join(folder, 'tool'));
    await symlink('bin', join(folder, 'programs'));
    await symlink('/etc/passwd', join(folder, 'out'));
    await symlink('nowhere', join(folder, 'broken'));
    await symlink('.', join(folder, 'round'));
    const { files, skipped } = await readSourceFolder(folder);
    assert.deepEqual(
      files.map(({ path, executable }) => [path, executable]),
      [
        ['bin/tool', true],
        ['handler.py', false],
        ['tool', true],
      ],
    );
    assert.deepEqual(skipped, ['broken', 'out', 'programs', 'round']);
  });

  test('needs something to run, and says what', async () => {
    await put('index.ts');
    await put('lib/handler.ts');
    await assert.rejects(
      readSourceFolder(folder),
      (error) =>
        error instanceof CliError &&
        /nothing to run: it needs a handler\.ts, a handler\.js, a handler\.mjs, a handler\.py, or a berth\.json/.test(
          error.message,
        ),
    );
    await put('Dockerfile');
    await assert.rejects(readSourceFolder(folder), /docker build -t NAME/);
    await put('berth.json', '{"command":["node","index.ts"]}');
    assert.equal((await paths()).length, 4);
  });

  test('that is too large is refused with its largest entries', async () => {
    await put('handler.ts');
    await put('data/model.bin');
    await truncate(join(folder, 'data/model.bin'), 300_000_000);
    await assert.rejects(
      readSourceFolder(folder),
      /too large to upload, which is for 50000 files with 201\.3 MB in all; name what need not run in .*\.berthignore\. The largest so far: data \(300\.0 MB\)/,
    );
  });
});

test('any folder name becomes a valid image name', () => {
  for (const [name, image] of [
    ['echo', 'echo'],
    ['My App', 'my-app'],
    ['a.b__c', 'a-b-c'],
    ['-x-', 'x'],
    ['äöü', 'app'],
    ['v1.2_3', 'v1-2_3'],
    ['x'.repeat(100), 'x'.repeat(60)],
  ] as const) {
    assert.equal(imageNameFor(name), image);
    assert.deepEqual(localImageNameFindings(image), []);
  }
});
