import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseArgumentList } from './argument-list.ts';

const kinds = { name: 'text', endpoint: 'list', json: 'switch', help: 'switch' } as const;

test('reads flags, lists, switches and words in any order', () => {
  assert.deepEqual(
    parseArgumentList(
      ['a', '--name', 'n', '--endpoint=1', '-h', 'b', '--endpoint', '2', '--json', '--', '--c'],
      kinds,
    ),
    {
      flags: { name: 'n', endpoint: ['1', '2'], help: true, json: true },
      positionals: ['a', 'b', '--c'],
      problems: [],
    },
  );
});

test('the last of a repeated flag counts, and a value may be empty or start with a dash after "="', () => {
  assert.deepEqual(parseArgumentList(['--name', 'a', '--name', 'b'], kinds).flags, { name: 'b' });
  assert.deepEqual(parseArgumentList(['--name='], kinds).flags, { name: '' });
  assert.deepEqual(parseArgumentList(['--name=-x'], kinds).flags, { name: '-x' });
});

test('reports invalid arguments', () => {
  assert.deepEqual(
    parseArgumentList(['--nmae', '--name', '--json', '--json=yes', '-x', '--constructor', '--name'], kinds)
      .problems,
    [
      'unknown option --nmae; did you mean --name?',
      '--name needs a value',
      '--json takes no value',
      'unknown option -x; there is --name --endpoint --json --help',
      'unknown option --constructor; there is --name --endpoint --json --help',
      '--name needs a value',
    ],
  );
});

test('passes a command on unchanged', () => {
  assert.deepEqual(parseArgumentList(['--json', 'pod', 'ls', '-l', '--json', '--', 'x'], kinds, 1), {
    flags: { json: true },
    positionals: ['pod', 'ls', '-l', '--json', '--', 'x'],
    problems: [],
  });
  assert.deepEqual(parseArgumentList(['pod', '--', '-l', 'x'], kinds, 1).positionals, ['pod', '-l', 'x']);
});
