import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatEnv, parseEnv, parsePorts } from './env-text.ts';

test('variables are read as people paste them', () => {
  const { env, problems } = parseEnv(
    '# a comment\nexport A=1\nB = "two words\\n"\r\nC=\'x=y\'\nD=\nnonsense\n',
  );
  assert.deepEqual(env, { A: '1', B: 'two words\n', C: 'x=y', D: '' });
  assert.deepEqual(problems, ['Line 6 is not NAME=value: nonsense']);
});

test('variables that are written are read back', () => {
  const env = { A: 'plain', B: ' spaces ', C: '"quoted"', D: 'two\nlines', E: '' };
  assert.deepEqual(parseEnv(formatEnv(env)).env, env);
});

test('ports without a protocol are HTTP', () => {
  assert.deepEqual(parsePorts('8888, 22/tcp'), { ports: ['8888/http', '22/tcp'], problem: undefined });
  assert.match(parsePorts('http').problem ?? '', /"http" is not a port/);
});
