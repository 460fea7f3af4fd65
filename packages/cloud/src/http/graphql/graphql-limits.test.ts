import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { getIntrospectionQuery, parse } from 'graphql';
import { BerthError } from '../../support/errors.ts';
import { parseDocument } from './graphql-document.ts';
import { checkDocumentSize, scanTokens } from './graphql-limits.ts';

const DEFAULTS = { maxDepth: 20, maxFields: 2000 };
const nested = (depth: number): string => `{ ${'a { '.repeat(depth - 1)} a ${'}'.repeat(depth - 1)} }`;

function refusal(work: () => unknown): string {
  let thrown: unknown;
  try {
    work();
  } catch (error) {
    thrown = error;
  }
  assert.ok(thrown instanceof BerthError, `expected a refusal, got ${String(thrown)}`);
  return thrown.message;
}

describe('depth', () => {
  test('is allowed up to its limit', () => {
    checkDocumentSize(parse(nested(20)), DEFAULTS);
    assert.match(
      refusal(() => checkDocumentSize(parse(nested(21)), DEFAULTS)),
      /more than 20 levels deep \(graphql\.maxDepth\); ask for the inner ones/,
    );
  });

  test('is counted through fragments, and not for fragments themselves', () => {
    const spread = (inner: string): string =>
      `{ a { ...f } } fragment f on T { ... { ... on T { b { ${inner} } } } }`;
    checkDocumentSize(parse(spread('c')), { maxDepth: 3, maxFields: 10 });
    assert.match(
      refusal(() => checkDocumentSize(parse(spread('c { d }')), { maxDepth: 3, maxFields: 10 })),
      /3 levels/,
    );
  });

  test('of an unused fragment counts too', () => {
    assert.match(
      refusal(() => checkDocumentSize(parse(`{ a } fragment f on T ${nested(21)}`), DEFAULTS)),
      /20 levels/,
    );
  });
});

describe('fields', () => {
  test('are counted one by one, aliases included', () => {
    const aliases = (count: number): string =>
      `{ ${Array.from({ length: count }, (_, index) => `a${index}: a`).join(' ')} }`;
    checkDocumentSize(parse(aliases(2000)), DEFAULTS);
    assert.match(
      refusal(() => checkDocumentSize(parse(aliases(2001)), DEFAULTS)),
      /more than 2000 fields \(graphql\.maxFields\)/,
    );
  });

  test('of a fragment count each time that it is spread', () => {
    const text = '{ ...f ...f b: a { ...f } } fragment f on T { x y }';
    checkDocumentSize(parse(text), { maxDepth: 9, maxFields: 7 });
    assert.match(
      refusal(() => checkDocumentSize(parse(text), { maxDepth: 9, maxFields: 6 })),
      /more than 6 fields/,
    );
  });

  test('of a bomb are counted without being unfolded', () => {
    const bomb =
      '{ ...f0 } ' +
      `${Array.from({ length: 150 }, (_, index) => `fragment f${index} on T { ...f${index + 1} ...f${index + 1} }`).join(' ')} ` +
      'fragment f150 on T { a }';
    assert.match(
      refusal(() => checkDocumentSize(parse(bomb), DEFAULTS)),
      /more than 2000 fields/,
    );
  });

  test('are the same as in the document with its fragments written out', () => {
    // Fragment n spreads only fragments after it, so there is an end.
    const fragment = fc.array(fc.oneof(fc.constant('a'), fc.constant('b { c }'), fc.nat({ max: 5 })), {
      minLength: 1,
      maxLength: 4,
    });
    fc.assert(
      fc.property(fc.array(fragment, { minLength: 1, maxLength: 5 }), (fragments) => {
        const write = (part: string | number, at: number, spread: (to: number) => string): string =>
          typeof part === 'string' ? part : at + 1 + part < fragments.length ? spread(at + 1 + part) : 'a';
        const folded =
          '{ ...f0 } ' +
          `${fragments.map((parts, at) => `fragment f${at} on T { ${parts.map((part) => write(part, at, (to) => `...f${to}`)).join(' ')} }`).join(' ')}`;
        const body = (at: number): string =>
          (fragments[at] ?? []).map((part) => write(part, at, body)).join(' ');
        const unfolded = fragments.map((_, at) => `query q${at} { ${body(at)} }`).join(' ');
        const fits = (text: string, maxFields: number, maxDepth: number): boolean => {
          try {
            checkDocumentSize(parse(text), { maxFields, maxDepth });
            return true;
          } catch {
            return false;
          }
        };
        const count = Math.max(...fragments.map((_, at) => body(at).match(/\w+/g)?.length ?? 0));
        assert.ok(fits(unfolded, count, 2) && fits(folded, count, 2));
        assert.ok(!fits(unfolded, count - 1, 2) && !fits(folded, count - 1, 2));
      }),
      { verbose: true },
    );
  });
});

describe('fragments', () => {
  test('may not spread themselves', () => {
    assert.match(
      refusal(() =>
        checkDocumentSize(
          parse('{ ...f } fragment f on T { a { ...g } } fragment g on T { ...f }'),
          DEFAULTS,
        ),
      ),
      /fragment f spreads itself/,
    );
  });

  test('are limited in number, so that a chain of them ends', () => {
    const chain = (count: number): string =>
      '{ ...f0 } ' +
      `${Array.from({ length: count - 1 }, (_, index) => `fragment f${index} on T { ...f${index + 1} }`).join(' ')} ` +
      `fragment f${count - 1} on T { a }`;
    checkDocumentSize(parse(chain(200)), DEFAULTS);
    assert.match(
      refusal(() => checkDocumentSize(parse(chain(201)), DEFAULTS)),
      /201 fragments; at most 200/,
    );
  });

  test('that do not exist are left to the validation', () => {
    checkDocumentSize(parse('{ ...nowhere }'), DEFAULTS);
  });
});

describe('the text of a document', () => {
  test('may not have too many words', () => {
    scanTokens(`{ ${'a '.repeat(49_998)} }`, DEFAULTS);
    assert.match(
      refusal(() => scanTokens(`{ ${'a '.repeat(50_000)} }`, DEFAULTS)),
      /more than 50000 words and marks; send values as variables/,
    );
  });

  test('may not nest its brackets without end, whichever they are', () => {
    for (const open of ['{a', '{a(b:[', '{a(b:{c:'])
      assert.match(
        refusal(() => scanTokens(open.repeat(30_000 / open.length), DEFAULTS)),
        /nested more than 84 deep/,
      );
  });

  test('may not make with an escape what a body may not hold', () => {
    assert.match(
      refusal(() => scanTokens('{ a(b: "\\u0000") }', DEFAULTS)),
      /NUL/,
    );
  });

  test('is known to hold texts or not', () => {
    assert.deepEqual(
      [
        scanTokens('{ a(b: 1) }', DEFAULTS),
        scanTokens('{ a(b: "x") }', DEFAULTS),
        scanTokens('{ a(b: """x""") }', DEFAULTS),
      ].map(({ holdsText }) => holdsText),
      [false, true, true],
    );
  });
});

test('the standard introspection query is within the limits', () => {
  parseDocument(
    getIntrospectionQuery({
      descriptions: true,
      specifiedByUrl: true,
      directiveIsRepeatable: true,
      schemaDescription: true,
      inputValueDeprecation: true,
      oneOf: true,
    }),
    DEFAULTS,
  );
});
