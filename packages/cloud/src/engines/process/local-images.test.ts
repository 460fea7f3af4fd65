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

const places: LocalImagePaths = {
  images: join(base, 'images'),
  examples: join(base, 'examples'),
  workerModule: '/lib/worker.ts',
  pythonCache: '/cache',
};

function file(path: string, content = ''): string {
  const whole = join(base, path);
  mkdirSync(dirname(whole), { recursive: true });
  writeFileSync(whole, content);
  return whole;
}

describe('images of the process engine', () => {
  test('the bare machine has no command of its own', () => {
    const image = resolveImage('local/shell', places);
    assert.deepEqual(image, { folder: null, command: [] });
    assert.deepEqual(resolveCommand(image, { entrypoint: ['a'], cmd: ['b', 'c'] }), ['a', 'b', 'c']);
    assert.throws(() => resolveCommand(image, { entrypoint: [], cmd: [] }), /needs a start command/);
  });

  test('a snapshot is found by its digest, an example by its name', () => {
    const typescript = file('images/greeter/0a1b/handler.ts');
    const latest = file('images/greeter/latest/handler.js');
    const example = file('examples/hello/handler.py');
    const { command } = resolveImage('local/greeter:0a1b', places);
    assert.deepEqual([command[0], command.slice(-2)], [process.execPath, ['/lib/worker.ts', typescript]]);
    assert.equal(resolveImage('local/greeter', places).command.at(-1), latest);
    assert.equal(resolveImage('local/greeter:latest', places).command.at(-1), latest);
    assert.deepEqual(resolveImage('local/hello', places), {
      folder: join(base, 'examples/hello'),
      command: ['python3', '-u', '-X', 'pycache_prefix=/cache', example],
    });
    assert.match(
      imageProblem('local/greeter:ffff', { ...places, examples: null }) ?? '',
      /there is no image "local\/greeter:ffff"/,
    );
  });

  test('berth.json goes before a handler', () => {
    file('images/own/1/berth.json', '{"command": ["node", "server.js"]}');
    file('images/own/1/handler.ts');
    assert.deepEqual(resolveImage('local/own:1', places).command, ['node', 'server.js']);
    file('images/own/2/berth.json', '{"command": "node server.js"}');
    assert.match(imageProblem('local/own:2', places) ?? '', /not a list of words/);
    file('images/own/3/berth.json', '{');
    assert.match(imageProblem('local/own:3', places) ?? '', /is not JSON/);
    file('images/own/4/berth.json', '{"name": "no command"}');
    assert.match(imageProblem('local/own:4', places) ?? '', /nothing to run/);
  });

  test('what the definition says goes over what the image says', () => {
    const image = { folder: '/image', command: ['node', 'server.js'] };
    assert.deepEqual(resolveCommand(image, { entrypoint: [], cmd: [] }), ['node', 'server.js']);
    assert.deepEqual(resolveCommand(image, { entrypoint: [], cmd: ['sh'] }), ['sh']);
  });

  test('anything else needs containers', () => {
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
        imageProblem(image, places) ?? '',
        /needs a container engine, and none is connected/,
        image,
      );
    }
  });

  test('a program is looked for as the instance would', async () => {
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
