import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as schema from './json-schema.ts';
import type { Fields, Schema } from './json-schema.ts';
import { queryReader, validator } from './schema-validator.ts';

const volume = schema.object(
  {
    name: schema.text({ minLength: 1, maxLength: 191 }),
    size: schema.integer({ minimum: 10, maximum: 4096 }),
  },
  {
    type: schema.stringEnum(['STANDARD', 'HIGH_PERFORMANCE']),
    env: schema.map(schema.text()),
    tier: schema.nullable(schema.stringEnum(['A', 'B'])),
    gpu: schema.nullable(
      schema.named('Gpu', schema.object({ id: schema.text(), count: schema.integer({ minimum: 1 }) })),
    ),
    ports: schema.list(schema.text({ pattern: '^\\d+/(http|tcp)$' }), { maxItems: 3, uniqueItems: true }),
    createdAt: schema.nullable(schema.text({ format: 'date-time' })),
    password: schema.text({ minLength: 8, pattern: '^[a-z]+$' }),
    registry: schema.object(
      {},
      { apiKey: schema.stringEnum(['none']), limits: schema.map(schema.map(schema.integer())) },
    ),
    extra: schema.anyValue(),
  },
);
const right = { name: 'data', size: 20 };
const findings = (changed: object): string[] => validator(volume)({ ...right, ...changed });

describe('a body', () => {
  test('that is valid has no findings and is not changed', () => {
    const body = Object.freeze({
      ...right,
      type: 'STANDARD',
      env: Object.freeze({ KEY: 'x' }),
      tier: null,
      gpu: null,
      ports: ['80/http'],
      createdAt: '2026-01-31T12:00:00+01:00',
      extra: { any: ['thing'] },
    });
    const before = structuredClone(body);
    assert.deepEqual(validator(volume)(body), []);
    assert.deepEqual(body, before);
  });

  test('gets findings with the path and the reason', () => {
    assert.deepEqual(validator(volume)({ size: 20 }), ["$: missing property 'name'"]);
    assert.deepEqual(findings({ bogus: 1 }), ["$: additional properties 'bogus' not allowed"]);
    assert.deepEqual(findings({ size: 3 }), ['$.size: must be at least 10, got 3']);
    assert.deepEqual(findings({ size: 5000 }), ['$.size: must be at most 4096, got 5000']);
    assert.deepEqual(findings({ size: 20.5 }), ['$.size: must be an integer, got 20.5']);
    assert.deepEqual(findings({ size: '20' }), ['$.size: must be an integer, got string']);
    assert.deepEqual(findings({ type: 'FAST' }), [
      '$.type: must be one of STANDARD, HIGH_PERFORMANCE, got "FAST"',
    ]);
    assert.deepEqual(findings({ type: 7 }), ['$.type: must be one of STANDARD, HIGH_PERFORMANCE, got 7']);
    assert.deepEqual(findings({ env: { KEY: 1 } }), ['$.env.KEY: must be a string, got number']);
    assert.deepEqual(findings({ env: { 'MY KEY': null } }), ['$.env["MY KEY"]: must be a string, got null']);
    assert.deepEqual(findings({ name: 'x'.repeat(192) }), ['$.name: must be at most 191 characters long']);
    assert.deepEqual(findings({ name: '' }), ['$.name: must not be empty']);
    assert.deepEqual(findings({ ports: ['80/http', 'web'] }), [
      '$.ports[1]: must match ^\\d+/(http|tcp)$, got "web"',
    ]);
    assert.deepEqual(findings({ ports: ['1/tcp', '2/tcp', '3/tcp', '1/tcp'] }), [
      '$.ports: must have at most 3 items, got 4',
      '$.ports: items [0] and [3] are equal, give each once',
    ]);
    assert.deepEqual(findings({ createdAt: 'yesterday' }), [
      '$.createdAt: must be a date and time such as 2026-01-31T12:00:00Z, got "yesterday"',
    ]);
    assert.deepEqual(validator(schema.object({}, {}, { minProperties: 1 }))({}), [
      '$: must have at least 1 property, got 0',
    ]);
  });

  test('that is missing or of the wrong kind altogether', () => {
    assert.deepEqual(validator(volume)(undefined), ['$: must be an object, got nothing']);
    assert.deepEqual(validator(volume)(null), ['$: must be an object, got null']);
    assert.deepEqual(validator(volume)([right]), ['$: must be an object, got array']);
    assert.deepEqual(validator(volume)('{}'), ['$: must be an object, got string']);
  });

  test('gets one finding where null was an alternative', () => {
    assert.deepEqual(findings({ tier: 'C' }), ['$.tier: must be one of A, B or null, got "C"']);
    assert.deepEqual(findings({ tier: 4 }), ['$.tier: must be one of A, B or null, got 4']);
    assert.deepEqual(findings({ gpu: 'H100' }), ['$.gpu: must be an object or null, got string']);
    assert.deepEqual(findings({ gpu: { id: 'H100', count: 0 } }), ['$.gpu.count: must be at least 1, got 0']);
    assert.deepEqual(findings({ gpu: { id: 1, count: 0 } }), [
      '$.gpu.id: must be a string, got number',
      '$.gpu.count: must be at least 1, got 0',
    ]);
    assert.deepEqual(findings({ createdAt: 5 }), ['$.createdAt: must be a string or null, got number']);
  });

  test('gets at most twenty findings, without repetition', () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`unknown${index}`, index]));
    assert.equal(findings(many).length, 20);
  });

  test('is never repeated at length, and a secret not at all', () => {
    const secret = 'S3cret-S3cret';
    const bodies = [
      { password: secret },
      { password: 12345678 },
      { env: { TOKEN: [secret] } },
      { registry: { apiKey: secret } },
      { registry: { limits: { secretLimit: { soft: 1.25 } } } },
    ];
    for (const body of bodies) {
      const lines = findings(body);
      assert.ok(lines.length > 0);
      assert.doesNotMatch(lines.join('\n'), /S3cret|12345678|1\.25/);
    }
    const long = '🚢'.repeat(5000);
    for (const line of findings({ type: long, [long]: 1, env: { [long]: 1 }, createdAt: long }))
      assert.ok(line.length < 200, line);
  });

  test('that is deep, huge or named like a prototype does no harm', () => {
    const deep = nested(200_000);
    assert.deepEqual(findings({ extra: deep }), []);
    assert.deepEqual(findings({ type: deep }), ['$.type: must be a string, got object']);
    const same = validator(schema.list(schema.anyValue(), { uniqueItems: true }));
    assert.deepEqual(same([deep, nested(200_000)]), ['$: nested too deeply']);

    assert.deepEqual(findings({ ports: Array.from({ length: 1_000_000 }, (_, index) => index) }), [
      '$.ports: must have at most 3 items, got 1000000',
    ]);
    assert.deepEqual(
      findings({
        env: Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`KEY${index}`, index])),
      }),
      ['$.env.KEY0: must be a string, got number'],
    );

    assert.deepEqual(
      validator(volume)(JSON.parse('{"name":"a","size":20,"__proto__":{"x":1},"constructor":1}')),
      [
        "$: additional properties '__proto__' not allowed",
        "$: additional properties 'constructor' not allowed",
      ],
    );
    assert.deepEqual(findings({ env: JSON.parse('{"__proto__":5,"toString":"x"}') }), [
      '$.env.__proto__: must be a string, got number',
    ]);
    assert.deepEqual(validator(schema.object({ toString: schema.text() }))({}), [
      "$: missing property 'toString'",
    ]);
    assert.equal(({} as Record<string, unknown>)['x'], undefined);
  });

  test('with alternatives is checked against the matching one', () => {
    const part = (kind: string, fields: Fields): Schema =>
      schema.object({ kind: { const: kind, type: 'string' }, ...fields });
    const shape = validator({
      type: 'object',
      oneOf: [
        part('circle', { radius: schema.number() }),
        part('square', { side: schema.number(), turned: schema.boolean() }),
      ],
    });
    assert.deepEqual(shape({ kind: 'square', side: 'long' }), [
      "$: missing property 'turned'",
      '$.side: must be a number, got string',
    ]);
    assert.deepEqual(shape({ kind: 'star' }), ['$.kind: must be one of circle, square, got "star"']);

    const fields = { gpu: schema.text(), cpu: schema.text() };
    const either = validator({
      type: 'object',
      properties: fields,
      oneOf: [{ required: ['gpu'] }, { required: ['cpu'] }],
    });
    assert.deepEqual(either({}), ["$: missing property 'gpu' or 'cpu'"]);
    assert.deepEqual(either({ gpu: 'a', cpu: 'b' }), [
      '$: fits more than one of its alternatives, must fit exactly one',
    ]);
    assert.deepEqual(validator({ anyOf: [schema.text(), schema.list(schema.text())] })(4), [
      '$: must be a string or an array, got number',
    ]);
    assert.deepEqual(validator({ type: 'object', propertyNames: { pattern: '^[A-Z]+$' } })({ low: 1 }), [
      "$: property name 'low' must match ^[A-Z]+$",
    ]);
  });
});

describe('formats', () => {
  const accepts = (format: string, text: string): boolean =>
    validator(format === 'date' ? dateText : format === 'uri' ? uriText : dateTimeText)(text).length === 0;
  const dateText = schema.text({ format: 'date' });
  const dateTimeText = schema.text({ format: 'date-time' });
  const uriText = schema.text({ format: 'uri' });

  test('date', () => {
    for (const text of ['2026-01-31', '2024-02-29', '2000-02-29']) assert.ok(accepts('date', text), text);
    for (const text of [
      '',
      '2026-1-31',
      '2026-02-29',
      '1900-02-29',
      '2026-13-01',
      '2026-00-10',
      '2026-04-31',
      '2026-01-00',
      '2026-01-31T00:00:00Z',
    ])
      assert.ok(!accepts('date', text), text);
  });

  test('date-time', () => {
    for (const text of [
      '2026-01-31T12:00:00Z',
      '2026-01-31t23:59:59.123456z',
      '2026-01-31T00:00:00-07:30',
      '9999-12-31T23:59:59.999Z',
      '0000-01-01T00:00:00Z',
    ])
      assert.ok(accepts('date-time', text) && !Number.isNaN(Date.parse(text)), text);
    for (const text of [
      '2026-01-31',
      '2026-01-31 12:00:00Z',
      '2026-01-31T12:00:00',
      '2026-01-31T24:00:00Z',
      '2026-01-31T12:60:00Z',
      '2026-01-31T23:59:60Z',
      '2026-02-30T12:00:00Z',
      '2026-01-31T12:00:00+25:00',
      '9999-12-31T23:59:59-10:00',
      '0000-01-01T00:00:00+10:00',
    ])
      assert.ok(!accepts('date-time', text), text);
  });

  test('uri', () => {
    for (const text of ['https://host.test', 'http://127.0.0.1:8484/a?b=c#d', 's3://bucket/key', 'urn:x:y'])
      assert.ok(accepts('uri', text), text);
    for (const text of [
      '',
      'host.test/path',
      '/path',
      'https://',
      'http://a b',
      'http://host.test/a b',
      'http://host.test/<x>',
      'javascript',
    ])
      assert.ok(!accepts('uri', text), text);
  });
});

describe('a query', () => {
  const read = queryReader(
    schema.object(
      {},
      {
        limit: schema.integer({ minimum: 1, maximum: 100, default: 10 }),
        price: schema.number(),
        ready: schema.boolean(),
        include: schema.commaList(schema.stringEnum(['A', 'B'])),
        ids: schema.list(schema.text()),
        levels: schema.commaList(schema.integer(), { default: [1] }),
        since: schema.nullable(schema.text({ format: 'date-time' })),
        apiKey: schema.integer(),
      },
    ),
  );

  test('becomes what the schema wants', () => {
    assert.deepEqual(
      read({ limit: '5', price: '-1.5e1', ready: 'true', include: 'A,B', ids: 'x,y', levels: '1,2' }),
      {
        value: { limit: 5, price: -15, ready: true, include: ['A', 'B'], ids: ['x,y'], levels: [1, 2] },
        findings: [],
      },
    );
    assert.deepEqual(read({ include: ['A', ' B ,'], ids: ['x', 'y'], ready: '0' }).value, {
      limit: 10,
      include: ['A', 'B'],
      ids: ['x', 'y'],
      levels: [1],
      ready: false,
    });
    for (const [text, value] of [
      ['1', true],
      ['True', true],
      ['false', false],
    ] as const)
      assert.equal(read({ ready: text }).value.ready, value);
    assert.deepEqual(read({ include: '' }).value.include, []);
  });

  test('gets its defaults, never the same object twice', () => {
    const first = read({});
    assert.deepEqual(first, { value: { limit: 10, levels: [1] }, findings: [] });
    first.value.levels?.push(2);
    assert.deepEqual(read({}).value.levels, [1]);
  });

  test('may have unknown keys', () => {
    assert.deepEqual(read({ other: 'x', toString: 'y', limit: undefined }), {
      value: { limit: 10, levels: [1] },
      findings: [],
    });
    assert.deepEqual(
      read(Object.assign(Object.create(null), { __proto__: 'x', constructor: 'y' })).findings,
      [],
    );
  });

  test('gets a finding for each invalid value', () => {
    const told = (raw: Record<string, string | string[]>): string[] => read(raw).findings;
    assert.deepEqual(told({ limit: 'ten' }), ['$.limit: must be an integer, got "ten"']);
    assert.deepEqual(told({ limit: '' }), ['$.limit: must be an integer, got ""']);
    assert.deepEqual(told({ limit: '1.5' }), ['$.limit: must be an integer, got "1.5"']);
    assert.deepEqual(told({ limit: '0' }), ['$.limit: must be at least 1, got 0']);
    assert.deepEqual(told({ limit: ['1', '2'] }), ['$.limit: must be given once only']);
    assert.deepEqual(told({ price: '0x10' }), ['$.price: must be a number, got "0x10"']);
    assert.deepEqual(told({ price: '1e999' }), ['$.price: must be a number, got Infinity']);
    assert.deepEqual(told({ ready: 'maybe' }), ['$.ready: must be true or false, got "maybe"']);
    assert.deepEqual(told({ include: 'A,C' }), ['$.include[1]: must be one of A, B, got "C"']);
    assert.deepEqual(told({ since: 'now' }), [
      '$.since: must be a date and time such as 2026-01-31T12:00:00Z, got "now"',
    ]);
    assert.deepEqual(told({ apiKey: 'abc' }), ['$.apiKey: must be an integer, got string']);
    assert.deepEqual(queryReader(schema.object({ region: schema.text() }))({}).findings, [
      "$: missing property 'region'",
    ]);
  });
});

describe('the cost', () => {
  test('a schema is compiled once', () => {
    assert.equal(validator(volume), validator(volume));
    const query = schema.object({});
    assert.equal(queryReader(query), queryReader(query));
  });
});

/** Lists in objects in lists, so many levels deep. */
function nested(levels: number): unknown {
  let deep: unknown = 1;
  for (let level = 0; level < levels; level += 1) deep = level % 2 === 0 ? [deep] : { deep };
  return deep;
}
