import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parse } from 'graphql';
import { operationOf, readDocument, rootFields } from './document.ts';
import { Refused } from './failures.ts';

const LIMITS = { maxDepth: 20, maxFields: 2000 };

describe('a document that does not parse', () => {
  const problem = (text: string): { message: string; locations: unknown } => {
    try {
      readDocument(text, LIMITS);
    } catch (error) {
      assert.ok(error instanceof Refused);
      return { message: error.findings[0]?.error.message ?? '', locations: error.findings[0]?.locations };
    }
    return assert.fail('it parsed');
  };

  test('is refused with the place', () => {
    assert.deepEqual(problem('{ a(b: 1 }'), {
      message: 'Syntax Error: Expected Name, found "}".',
      locations: [{ line: 1, column: 10 }],
    });
  });

  test('never has its content quoted', () => {
    const secret = 'hunter2';
    for (const text of [
      `{ a(password: "x" "${secret}") }`,
      `{ a(password: "x" """${secret} "quoted" """) }`,
      `{ a(password: "x" 7${secret}) }`,
      `{ a(b: ) ${secret} }) "${secret}"`,
      `{ a(password: "\\u{${secret}}") }`,
      `{ a(password: "\\q${secret}") }`,
      `{ a(password: "${secret}\n") }`,
      `{ a(password: '${secret}') }`,
      `mutation ${secret} ${secret} { a }`,
    ]) {
      const { message } = problem(text);
      assert.doesNotMatch(message, /hunter|unter2|quoted/, message);
      assert.match(message, /^Syntax Error: /);
    }
  });
});

describe('the operation that is meant', () => {
  const two = parse('query A { a } mutation B { b }');

  test('is the only one, or the one that is named', () => {
    assert.equal(operationOf(parse('{ a }'), undefined).operation, 'query');
    assert.equal(operationOf(two, 'B').operation, 'mutation');
    assert.throws(() => operationOf(two, undefined), /2 operations; say which one in operationName/);
    assert.throws(() => operationOf(two, 'C'), /no operation of the name/);
    assert.throws(() => operationOf(parse('fragment f on T { a }'), undefined), /no operation/);
    assert.throws(() => operationOf(parse('subscription { a }'), undefined), /not offered/);
  });
});

test('root fields are found by their real names, through fragments', () => {
  const document = parse(
    'query A { x: a ... { b } ... on Query @skip(if: true) { c } ...f } query B { z } fragment f on Query { d ...f ...g } fragment g on Query { e { inner } }',
  );
  assert.deepEqual([...rootFields(document, operationOf(document, 'A'))], ['a', 'b', 'c', 'd', 'e']);
});
