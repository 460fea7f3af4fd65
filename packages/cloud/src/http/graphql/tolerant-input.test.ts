import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { buildSchema, Kind, parse, print, validate } from 'graphql';
import type { VariableDefinitionNode } from 'graphql';
import { providedArguments, tolerantDocument, tolerantVariables } from './tolerant-input.ts';
import type { DroppedFields } from './tolerant-input.ts';

const schema = buildSchema(`
  directive @mayBeEmpty on INPUT_FIELD_DEFINITION
  scalar JSON
  enum Cloud { SECURE ALL }
  input Variable { key: String value: String @mayBeEmpty }
  input Save { id: ID name: String size: Int cloud: Cloud clouds: [Cloud] env: [Variable] inner: Save config: JSON }
  type Query { save(input: Save, cloud: Cloud, name: String): String remove(id: ID, name: String): String }
`);

function rewritten(text: string): { text: string; dropped: string[]; errors: string[] } {
  const dropped: DroppedFields = new Set();
  const document = tolerantDocument(schema, parse(text), dropped);
  return {
    text: print(document),
    dropped: [...dropped],
    errors: validate(schema, document).map(({ message }) => message),
  };
}

/** As the printer writes it. */
function printed(text: string): string {
  return print(parse(text));
}

function variables(
  declared: string,
  values: Record<string, unknown>,
): { values: Record<string, unknown>; dropped: string[] } {
  const dropped: DroppedFields = new Set();
  const [operation] = parse(`query (${declared}) { __typename }`).definitions;
  const definitions =
    operation?.kind === Kind.OPERATION_DEFINITION
      ? (operation.variableDefinitions as VariableDefinitionNode[])
      : [];
  return { values: tolerantVariables(schema, definitions, values, dropped), dropped: [...dropped] };
}

describe('a document', () => {
  test('loses unknown input fields at any depth, and lists them', () => {
    const { text, dropped, errors } = rewritten(
      '{ save(input: {name: "a", colour: "red", inner: {taste: 1, size: 2}, env: [{key: "A", note: "x"}]}) }',
    );
    assert.equal(text, printed('{ save(input: { name: "a", inner: { size: 2 }, env: [{ key: "A" }] }) }'));
    assert.deepEqual(dropped, ['Save.colour', 'Save.taste', 'Variable.note']);
    assert.deepEqual(errors, []);
  });

  test('loses empty texts, of whatever type their field is', () => {
    assert.equal(
      rewritten(
        '{ save(input: {id: "", name: "", size: "", cloud: "", inner: {name: ""}}, name: "", cloud: "") }',
      ).text,
      printed('{ save(input: { inner: { } }) }'),
    );
    assert.equal(rewritten('{ save(input: {name: """"""}) }').text, printed('{ save(input: { }) }'));
  });

  test('keeps an empty text where it is a value', () => {
    assert.equal(
      rewritten('{ save(input: {env: [{key: "A", value: ""}, {key: "", value: "b"}]}) }').text,
      printed('{ save(input: { env: [{ key: "A", value: "" }, { value: "b" }] }) }'),
    );
  });

  test('may write an enum value as a text and a text as a bare name', () => {
    const { text, errors } = rewritten(
      '{ save(input: {name: plain, id: plain, cloud: "SECURE", clouds: ["ALL", SECURE]}, cloud: "ALL", name: bare) }',
    );
    assert.equal(
      text,
      printed(
        '{ save(input: { name: "plain", id: "plain", cloud: SECURE, clouds: [ALL, SECURE] } cloud: ALL name: "bare") }',
      ),
    );
    assert.deepEqual(errors, []);
  });

  test('keeps free JSON unchanged', () => {
    assert.equal(
      rewritten('{ save(input: {config: {a: "", b: [bare], unknown: null}}) }').text,
      printed('{ save(input: { config: { a: "", b: [bare], unknown: null } }) }'),
    );
  });

  test('keeps nulls, which resolvers treat as omitted', () => {
    assert.equal(
      rewritten('{ save(input: {name: null, cloud: null}) }').text,
      printed('{ save(input: { name: null, cloud: null }) }'),
    );
  });

  test('may declare String, ID and enums for one another', () => {
    const { text, errors } = rewritten(
      `query ($a: String!, $b: ID, $c: String = "ALL", $d: [String!]) { remove(id: $a, name: $b)
        save(cloud: $c, input: {clouds: $d}) }`,
    );
    assert.equal(
      text,
      printed(
        `query ($a: ID!, $b: String, $c: Cloud = ALL, $d: [Cloud!]) { remove(id: $a, name: $b)
          save(cloud: $c, input: { clouds: $d }) }`,
      ),
    );
    assert.deepEqual(errors, []);
  });

  test('does not have numbers made of texts', () => {
    assert.match(
      rewritten('query ($a: String) { save(input: {size: $a}) }').errors.join(),
      /type "String" used in position expecting type "Int"/,
    );
  });

  test('is left to the validation where the schema knows nothing of it', () => {
    assert.equal(
      rewritten('{ nothing(of: "", it: {a: ""}) { here } }').text,
      printed('{ nothing(it: { a: "" }) { here } }'),
    );
  });
});

describe('variables', () => {
  test('lose fields that are not known and empty texts, by their declared types', () => {
    const { values, dropped } = variables('$input: Save!, $list: [Save]', {
      input: {
        name: 'a',
        colour: 'red',
        cloud: '',
        size: '',
        env: [{ key: 'A', value: '', note: 1 }],
        inner: { name: '', size: 0 },
      },
      list: [{ name: '', taste: 1 }, null],
    });
    assert.deepEqual(values, {
      input: { name: 'a', env: [{ key: 'A', value: '' }], inner: { size: 0 } },
      list: [{}, null],
    });
    assert.deepEqual(dropped, ['Save.colour', 'Variable.note', 'Save.taste']);
  });

  test('that are not declared are ignored', () => {
    assert.deepEqual(variables('$name: String', { name: 'a', other: 'b' }).values, { name: 'a' });
  });

  test('of an enum may be empty, and are then not given', () => {
    assert.deepEqual(variables('$cloud: Cloud, $other: Cloud!', { cloud: '', other: 'ALL' }).values, {
      other: 'ALL',
    });
  });

  test('keep nulls, free JSON and values of a wrong kind', () => {
    const values = {
      input: { name: null, config: { a: '', deep: [{ b: '' }] }, env: 'text', size: false },
      name: 7,
    };
    assert.deepEqual(variables('$input: Save, $name: String', values).values, values);
  });

  test('with names that every object has are still not known', () => {
    const { values, dropped } = variables('$input: Save', {
      input: { constructor: 'a', toString: 'b', name: 'c' },
    });
    assert.deepEqual(values, { input: { name: 'c' } });
    assert.deepEqual(dropped, ['Save.constructor', 'Save.toString']);
  });
});

describe('the given arguments', () => {
  const { args } = schema.getQueryType()?.getFields()['save'] ?? { args: [] };

  test('holds no nulls and no empty texts, except where empty is a value', () => {
    const input = {
      name: '',
      id: null,
      size: 0,
      cloud: 'ALL',
      env: [{ key: 'A', value: '' }, null, { key: '', value: null }],
      config: { a: null, b: '' },
    };
    assert.deepEqual(providedArguments(args, { input, name: '', cloud: null }), {
      input: { size: 0, cloud: 'ALL', env: [{ key: 'A', value: '' }, {}], config: { a: null, b: '' } },
    });
  });
});
