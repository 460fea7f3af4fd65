import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import {
  LARGE_BODY_CHARS,
  LargeBodyParser,
  parseLargeJobDone,
  parseLargeJobRequest,
} from './large-body-parser.ts';

/** Many members: such a text takes long to parse. */
const MANY = JSON.stringify(Array.from({ length: 60_000 }, (_, index) => ({ id: index, tags: ['a', 'b'] })));

describe('large bodies', () => {
  const parser = new LargeBodyParser();
  after(() => parser.close());

  test('give the same result as small ones, and the same errors', async () => {
    assert.ok(MANY.length > LARGE_BODY_CHARS);
    assert.deepEqual(await parseLargeJobRequest('a', `{"input":${MANY},"policy":{"ttl":20000}}`), {
      ttl: 20_000,
    });
    assert.deepEqual(await parseLargeJobDone('a', `{"output":${MANY}}`), {
      kind: 'result',
      output: MANY,
      error: null,
      refresh: false,
    });
    await assert.rejects(async () => parseLargeJobRequest('a', `{"input":${MANY}`), {
      code: 'rule',
      message: 'the body is not valid JSON',
    });
    await assert.rejects(async () => parseLargeJobDone('a', `[${MANY}]`), { code: 'malformed' });
  });

  test('are parsed beside everything else, and accounts take turns', async () => {
    const order: string[] = [];
    const parse = async (account: string): Promise<void> => {
      await parser.parse(account, { kind: 'request', text: `{"input":${MANY}}` });
      order.push(account);
    };
    const flood = Array.from({ length: 6 }, () => parse('flooder'));
    const other = parse('other');
    let turns = 0;
    const all = Promise.all([...flood, other]);
    let isOver = false;
    void all.then(() => (isOver = true));
    while (!isOver) {
      await new Promise((resolve) => setImmediate(resolve));
      turns += 1;
    }
    await all;
    // Parsed here, they would have taken no more turns than there are bodies.
    assert.ok(turns > 100, `${turns} turns`);
    assert.ok(order.indexOf('other') <= 2, order.join(' '));
  });

  test('whose thread ends are refused, and the next one gets another thread', async () => {
    const lost = parser.parse('a', { kind: 'request', text: `{"input":${MANY}}` });
    await parser.close();
    await assert.rejects(lost, { code: 'unavailable' });
    assert.deepEqual(await parser.parse('a', { kind: 'request', text: '{"input":1}' }), {});
  });
});
