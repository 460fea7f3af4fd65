import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parse } from 'graphql';
import { selectOperation, parseDocument, rootFieldNames } from './graphql-document.ts';
import { DocumentRejectedError } from './graphql.errors.ts';

const LIMITS = { maxDepth: 20, maxFields: 2000 };

describe('a document that does not parse', () => {
  const problem = (text: string): { message: string; locations: unknown } => {
    try {
      parseDocument(text, LIMITS);
    } catch (error) {
      assert.ok(error instanceof DocumentRejectedError);
      return { message: error.errors[0]?.error.message ?? '', locations: error.errors[0]?.locations };
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
    assert.equal(selectOperation(parse('{ a }'), undefined).operation, 'query');
    assert.equal(selectOperation(two, 'B').operation, 'mutation');
    assert.throws(() => selectOperation(two, undefined), /2 operations; name one in operationName/);
    assert.throws(() => selectOperation(two, 'C'), /no operation with the name/);
    assert.throws(() => selectOperation(parse('fragment f on T { a }'), undefined), /no operation/);
    assert.throws(() => selectOperation(parse('subscription { a }'), undefined), /not supported/);
  });
});

test('root fields are found by their real names, through fragments', () => {
  const document = parse(
    `query A { x: a ... { b } ... on Query @skip(if: true) { c } ...f } query B { z } fragment f on
      Query { d ...f ...g } fragment g on Query { e { inner } }`,
  );
  assert.deepEqual([...rootFieldNames(document, selectOperation(document, 'A'))], ['a', 'b', 'c', 'd', 'e']);
});
