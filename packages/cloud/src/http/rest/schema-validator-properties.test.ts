import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import * as schema from './json-schema.ts';
import type { Schema } from './json-schema.ts';
import { queryReader, validator } from './schema-validator.ts';

describe('any schema', () => {
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));

  test('accepts the values made from it', (t) => {
    t.diagnostic(`seed ${seed}`);
    fc.assert(
      fc.property(schemaAndValue, ([made, value]) => assert.deepEqual(validator(made)(value), [])),
      { seed, numRuns: 120 },
    );
  });

  test('has a finding for each value with one thing wrong', (t) => {
    t.diagnostic(`seed ${seed}`);
    fc.assert(
      fc.property(schemaAndValue, fc.nat(), ([made, value], pick) => {
        const wrong = [...mutants(made, value)];
        fc.pre(wrong.length > 0);
        const mutant = wrong[pick % wrong.length];
        const before = JSON.stringify(mutant);
        const lines = validator(made)(mutant);
        assert.ok(lines.length >= 1 && lines.length <= 20, `no finding for ${before}`);
        for (const line of lines) assert.match(line, /^\$[^\n]*: \S/);
        assert.equal(JSON.stringify(mutant), before);
      }),
      { seed, numRuns: 150 },
    );
  });

  test('never throws, whatever is sent', (t) => {
    t.diagnostic(`seed ${seed}`);
    const sent = fc.oneof(fc.jsonValue(), fc.anything({ withNullPrototype: true }));
    fc.assert(
      fc.property(schemas, fc.array(sent, { maxLength: 5 }), (made, values) =>
        values.forEach((value) => assert.ok(Array.isArray(validator(made)(value)))),
      ),
      { seed, numRuns: 80 },
    );
    const raw = fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.array(fc.string())));
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('a', 'b', 'c', 'toString'), schemas, { maxKeys: 3 }),
        raw,
        (fields, query) => {
          const read = queryReader(schema.object({}, fields));
          assert.ok(Array.isArray(read({ ...query, a: 'x', b: ['1', '2'] }).findings));
        },
      ),
      { seed, numRuns: 80 },
    );
  });
});

const names = fc.oneof(
  fc.constantFrom('name', 'size', 'env', 'a b', 'x/y~z', 'constructor', 'toString', 'hasOwnProperty'),
  fc.string({ minLength: 1, maxLength: 8 }).filter((name) => name !== '__proto__'),
);
const { schema: schemas } = fc.letrec<{ schema: Schema }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3 },
    fc
      .tuple(fc.nat(3), fc.nat(5))
      .map(([least, more]) => schema.text({ minLength: least, maxLength: least + more })),
    fc.constantFrom('date', 'date-time', 'uri').map((format) => schema.text({ format })),
    fc
      .tuple(fc.integer({ min: -50, max: 50 }), fc.nat(50))
      .map(([minimum, more]) => schema.integer({ minimum, maximum: minimum + more })),
    fc.constant(schema.number()),
    fc.constant(schema.boolean()),
    fc
      .uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 4 })
      .map((values) => schema.stringEnum(values)),
    tie('schema').map((inner) => schema.nullable(inner)),
    fc
      .tuple(tie('schema'), fc.nat(2), fc.nat(3))
      .map(([items, minItems, more]) => schema.list(items, { minItems, maxItems: minItems + more })),
    tie('schema').map((values) => schema.map(values)),
    fc
      .tuple(
        fc.dictionary(names, tie('schema'), { maxKeys: 3, noNullPrototype: true }),
        fc.dictionary(names, tie('schema'), { maxKeys: 3, noNullPrototype: true }),
      )
      .map(([required, optional]) =>
        schema.object(
          required,
          Object.fromEntries(Object.entries(optional).filter(([name]) => !Object.hasOwn(required, name))),
        ),
      ),
  ),
}));
const schemaAndValue = schemas.chain((made) => fc.tuple(fc.constant(made), valueFor(made)));

function valueFor(made: Schema): fc.Arbitrary<unknown> {
  const inner = withoutNull(made);
  if (inner !== undefined) return fc.option(valueFor(inner), { freq: 4 });
  if (made['enum'] !== undefined) return fc.constantFrom(...(made['enum'] as string[]));
  switch (made['type']) {
    case 'string':
      if (made['format'] === 'uri') return fc.webUrl();
      if (made['format'] !== undefined)
        return moments.map((moment) => (made['format'] === 'date' ? moment.slice(0, 10) : moment));
      return fc.string({
        unit: 'binary',
        minLength: made['minLength'] as number,
        maxLength: made['maxLength'] as number,
      });
    case 'integer':
      return fc.integer({ min: made['minimum'] as number, max: made['maximum'] as number });
    case 'number':
      return fc.double({ noNaN: true, noDefaultInfinity: true });
    case 'boolean':
      return fc.boolean();
    case 'array':
      return fc.array(valueFor(made['items'] as Schema), {
        minLength: made['minItems'] as number,
        maxLength: made['maxItems'] as number,
      });
    default: {
      if (typeof made['additionalProperties'] === 'object')
        return fc.dictionary(names, valueFor(made['additionalProperties'] as Schema), {
          maxKeys: 3,
          noNullPrototype: true,
        });
      const fields = Object.fromEntries(
        Object.entries(schema.propertiesOf(made)).map(([name, field]) => [name, valueFor(field)]),
      );
      return fc.record(fields, { requiredKeys: made['required'] as string[], noNullPrototype: true });
    }
  }
}

const moments = fc
  .date({ min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true })
  .map((date) => date.toISOString());

/** What a nullable schema allows besides null. */
function withoutNull(made: Schema): Schema | undefined {
  if (Array.isArray(made['type'])) return { ...made, type: (made['type'] as string[])[0] };
  return (made['anyOf'] as Schema[] | undefined)?.[0];
}

/** Copies of a value that each have one thing wrong. */
function* mutants(made: Schema, value: unknown): Generator {
  const inner = withoutNull(made);
  for (const other of [null, true, 'text that no list of choices has', 1.5, [], {}])
    if (!allowsType(made, other)) yield other;
  if (inner !== undefined) {
    if (value !== null) for (const mutant of mutants(inner, value)) if (mutant !== null) yield mutant;
    return;
  }
  if (made['enum'] !== undefined) yield 'text that no list of choices has';
  if (made['format'] !== undefined) yield `not ${String(value)}`;
  if (made['type'] === 'string' && made['minLength']) yield 'x'.repeat((made['minLength'] as number) - 1);
  if (made['type'] === 'string' && made['maxLength'] !== undefined)
    yield 'x'.repeat((made['maxLength'] as number) + 1);
  if (made['type'] === 'integer')
    yield* [(made['minimum'] as number) - 1, (made['maximum'] as number) + 1, (value as number) + 0.5];
  if (Array.isArray(value)) {
    if (made['minItems']) yield value.slice(0, (made['minItems'] as number) - 1);
    for (const [index, item] of value.entries())
      for (const mutant of mutants(made['items'] as Schema, item)) yield value.with(index, mutant);
  } else if (typeof value === 'object' && value !== null) {
    for (const name of (made['required'] ?? []) as string[])
      yield Object.fromEntries(Object.entries(value).filter(([key]) => key !== name));
    if (made['additionalProperties'] === false)
      for (const name of ['a name that no schema has', '__proto__', 'valueOf'])
        yield { ...value, ...ownProperty(name) };
    for (const [name, item] of Object.entries(value)) {
      const field =
        typeof made['additionalProperties'] === 'object'
          ? (made['additionalProperties'] as Schema)
          : schema.propertiesOf(made)[name]!;
      for (const mutant of mutants(field, item)) yield { ...value, [name]: mutant };
    }
  }
}

function ownProperty(name: string): object {
  return Object.defineProperty({}, name, { value: 1, enumerable: true });
}

function allowsType(made: Schema, value: unknown): boolean {
  const inner = withoutNull(made);
  if (inner !== undefined) return value === null || allowsType(inner, value);
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  return made['type'] === type;
}
