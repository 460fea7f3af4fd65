import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import Fastify from 'fastify';
import { pino } from 'pino';
import { BerthError } from '../support/errors.ts';
import { toBerthError } from './http.errors.ts';

/** A log whose lines are kept. */
function kept(): { log: ReturnType<typeof pino>; lines: string[] } {
  const lines: string[] = [];
  return { lines, log: pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) }) };
}

describe('whatever was thrown', () => {
  test('a BerthError keeps its code, and is logged only if it is internal', () => {
    const { log, lines } = kept();
    const expected = new BerthError('rule', 'no');
    assert.equal(toBerthError(expected, log, 'r1'), expected);
    assert.deepEqual(lines, []);
    for (const code of ['internal', 'unavailable'] as const)
      toBerthError(new BerthError(code, 'away', { cause: new Error('why') }), log, 'r1');
    assert.equal(lines.length, 2);
    assert.match(lines[0] ?? '', /why/);
  });

  test('what many requests are refused with is logged once in a while', () => {
    const { log, lines } = kept();
    for (let request = 0; request < 200; request += 1)
      for (const message of ['the disk is full', 'the database is away'])
        toBerthError(new BerthError('unavailable', message), log, `r${request}`);
    assert.equal(lines.length, 2);
  });

  test('anything else is a defect: the log has all of it, the answer the request alone', () => {
    for (const thrown of [
      new Error('password hunter2'),
      'hunter2',
      undefined,
      { secret: 'hunter2' },
      new TypeError('x is not a function'),
    ]) {
      const { log, lines } = kept();
      const error = toBerthError(thrown, log, 'request-7');
      assert.equal(error.code, 'internal');
      assert.match(error.message, /request-7/);
      assert.doesNotMatch(error.message, /hunter2|not a function/);
      assert.equal(lines.length, 1);
    }
  });

  test('a request that its client broke off is no defect', () => {
    const { log, lines } = kept();
    assert.equal(
      toBerthError(Object.assign(new Error('aborted'), { code: 'ECONNRESET' }), log, 'r').code,
      'malformed',
    );
    assert.deepEqual(lines, []);
  });

  test('errors of the web framework get messages of Berth', async () => {
    const app = Fastify({ bodyLimit: 10 });
    const { log } = kept();
    app.setErrorHandler((error, _request, reply) => reply.code(400).send(toBerthError(error, log, 'r').code));
    app.post('/', () => '');
    const answer = async (payload: string, headers: Record<string, string>): Promise<string> =>
      (await app.inject({ method: 'POST', url: '/', payload, headers })).body;
    assert.equal(await answer('x'.repeat(11), { 'content-type': 'application/json' }), 'too-large');
    assert.equal(await answer('<a/>', { 'content-type': 'application/xml' }), 'media-type');
    assert.equal(
      await answer('"a"', { 'content-type': 'application/json', 'content-length': '9' }),
      'malformed',
    );
    assert.equal(await answer('{', { 'content-type': 'application/json' }), 'malformed');
    assert.equal(await answer('', { 'content-type': 'application/json' }), 'malformed');
    await app.close();
  });
});
