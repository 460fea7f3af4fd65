import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { BerthError } from '../../support/errors.ts';
import {
  resolveCommand,
  findProgram,
  type LocalImagePaths,
  imageProblem,
  resolveImage,
} from './local-images.ts';

const base = mkdtempSync(join(tmpdir(), 'berth-images-'));
after(() => rmSync(base, { recursive: true }));

const paths: LocalImagePaths = {
  images: join(base, 'images'),
  examples: join(base, 'examples'),
  workerModule: '/lib/worker.ts',
  pythonCache: '/cache',
};

function file(path: string, content = ''): string {
  const fullPath = join(base, path);
  mkdirSync(dirname(fullPath), { recursive: true });
  writeFileSync(fullPath, content);
  return fullPath;
}

describe('images of the process engine', () => {
  test('local/shell has no default command', () => {
    const image = resolveImage('local/shell', paths);
    assert.deepEqual(image, { folder: null, command: [] });
    assert.deepEqual(resolveCommand(image, { entrypoint: ['a'], cmd: ['b', 'c'] }), ['a', 'b', 'c']);
    assert.throws(() => resolveCommand(image, { entrypoint: [], cmd: [] }), /needs a start command/);
  });

  test('a snapshot is found by its digest, an example by its name', () => {
    const typescript = file('images/greeter/0a1b/handler.ts');
    const latest = file('images/greeter/latest/handler.js');
    const example = file('examples/hello/handler.py');
    const { command } = resolveImage('local/greeter:0a1b', paths);
    assert.deepEqual([command[0], command.slice(-2)], [process.execPath, ['/lib/worker.ts', typescript]]);
    assert.equal(resolveImage('local/greeter', paths).command.at(-1), latest);
    assert.equal(resolveImage('local/greeter:latest', paths).command.at(-1), latest);
    assert.deepEqual(resolveImage('local/hello', paths), {
      folder: join(base, 'examples/hello'),
      command: ['python3', '-u', '-X', 'pycache_prefix=/cache', example],
    });
    assert.match(
      imageProblem('local/greeter:ffff', { ...paths, examples: null }) ?? '',
      /there is no image "local\/greeter:ffff"/,
    );
  });

  test('berth.json takes precedence over a handler file', () => {
    file('images/own/1/berth.json', '{"command": ["node", "server.js"]}');
    file('images/own/1/handler.ts');
    assert.deepEqual(resolveImage('local/own:1', paths).command, ['node', 'server.js']);
    file('images/own/2/berth.json', '{"command": "node server.js"}');
    assert.match(imageProblem('local/own:2', paths) ?? '', /not a list of words/);
    file('images/own/3/berth.json', '{');
    assert.match(imageProblem('local/own:3', paths) ?? '', /is not JSON/);
    file('images/own/4/berth.json', '{"name": "no command"}');
    assert.match(imageProblem('local/own:4', paths) ?? '', /nothing to run/);
  });

  test('the command of the spec overrides the command of the image', () => {
    const image = { folder: '/image', command: ['node', 'server.js'] };
    assert.deepEqual(resolveCommand(image, { entrypoint: [], cmd: [] }), ['node', 'server.js']);
    assert.deepEqual(resolveCommand(image, { entrypoint: [], cmd: ['sh'] }), ['sh']);
  });

  test('any other image needs a container engine', () => {
    for (const image of [
      'python:3.12',
      'runpod/base:1',
      'local/../etc',
      'local/',
      'local/UPPER',
      'local/a/b',
      'local/a:..',
    ]) {
      assert.match(
        imageProblem(image, paths) ?? '',
        /needs a container engine, and none is connected/,
        image,
      );
    }
  });

  test('a program is searched in the PATH of the instance', async () => {
    assert.equal(await findProgram('sh', base, '/nowhere:/bin'), '/bin/sh');
    assert.equal(await findProgram('/bin/sh', base, ''), '/bin/sh');
    for (const program of ['no-such-program', './handler.ts', '/bin']) {
      await assert.rejects(
        findProgram(program, base, '/bin'),
        (error) => error instanceof BerthError && error.code === 'rule' && error.message.includes(program),
      );
    }
  });
});
