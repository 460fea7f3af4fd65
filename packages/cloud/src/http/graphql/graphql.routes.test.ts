import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { getIntrospectionQuery } from 'graphql';
import type { Secrets } from '../../resources/secrets/secrets.ts';
import { BerthError } from '../../support/errors.ts';
import { startGraphqlFixture } from './graphql.fixture.ts';
import type { GraphqlFixture } from './graphql.fixture.ts';

describe('GraphQL over HTTP', () => {
  let berth: GraphqlFixture;
  before(async () => {
    berth = await startGraphqlFixture();
  });
  after(() => berth.close());

  test('a success holds data and no errors key', async () => {
    const answer = await berth.ask('{ myself { id } }');
    assert.equal(answer.status, 200);
    assert.equal(answer.text, '{"data":{"myself":{"id":"root"}}}');
    assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
  });

  describe('the method', () => {
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const) {
      test(`${method} is not one`, async () => {
        const response = await berth.app.inject({
          method,
          url: '/graphql?query={myself{id}}',
          ...(method === 'PUT' && { payload: 'not json' }),
        });
        assert.equal(response.statusCode, 405);
        assert.equal(response.headers['allow'], 'POST');
        if (method !== 'HEAD')
          assert.match(response.json<{ errors: { message: string }[] }>().errors[0]?.message ?? '', /POST/);
      });
    }
  });

  describe('the body', () => {
    const query = '{ myself { id } }';
    const headers = (): Record<string, string> => ({ authorization: `Bearer ${berth.rootKey}` });

    for (const type of [
      'application/json',
      'application/json; charset=utf-8',
      'text/plain',
      'application/graphql-response+json',
      'application/x-www-form-urlencoded',
      'nonsense',
      undefined,
    ]) {
      test(`is read as JSON when its type is ${type ?? 'not said'}`, async () => {
        const answer = await berth.post(Buffer.from(JSON.stringify({ query })), {
          ...headers(),
          ...(type !== undefined && { 'content-type': type }),
        });
        assert.equal(answer.text, '{"data":{"myself":{"id":"root"}}}');
      });
    }

    test('may hold other keys and empty ones', async () => {
      const answer = await berth.post(
        JSON.stringify({ query, variables: null, operationName: null, extensions: {}, id: 7 }),
        headers(),
      );
      assert.deepEqual(answer.data, { myself: { id: 'root' } });
      assert.deepEqual((await berth.post(JSON.stringify({ query, operationName: '' }), headers())).data, {
        myself: { id: 'root' },
      });
    });

    for (const [what, body, message] of [
      ['nothing', '', /not valid JSON/],
      ['no JSON', '{"query": ', /not valid JSON/],
      ['a list', '[{"query":"{ myself { id } }"}]', /must be a JSON object/],
      ['null', 'null', /must be a JSON object/],
      ['no query', '{}', /has no "query"/],
      ['an empty query', '{"query":" "}', /has no "query"/],
      ['a query that is no text', '{"query":{}}', /has no "query"/],
      [
        'variables that are a list',
        '{"query":"{ myself { id } }","variables":[]}',
        /"variables" must be a JSON object/,
      ],
      [
        'an operation name that is no text',
        '{"query":"{ myself { id } }","operationName":5}',
        /"operationName" must be text/,
      ],
    ] as const) {
      test(`that is ${what} is a failure with status 200`, async () => {
        const answer = await berth.post(body, headers());
        assert.equal(answer.status, 200);
        assert.match(answer.message, message);
        assert.equal(answer.data, null);
      });
    }

    test('over 20 MiB is refused, announced or not', async () => {
      const large = Buffer.alloc(20 * 1024 * 1024 + 1, 0x20);
      const announced = await berth.post(large, headers());
      assert.equal(announced.status, 413);
      assert.equal(announced.code, 'TOO_LARGE');
      assert.match(announced.message, /20971520/);
      assert.equal((await berth.post(large, { ...headers(), 'transfer-encoding': 'chunked' })).status, 413);
    });

    test('of 19 MiB is read', async () => {
      const answer = await berth.ask(
        'mutation ($value: String) { secretCreate(input: {name: "large", value: $value}) { name } }',
        { variables: { value: 'x'.repeat(15 * 1024 * 1024), ignored: 'y'.repeat(4 * 1024 * 1024) } },
      );
      assert.deepEqual(answer.data, { secretCreate: { name: 'large' } });
    });
  });

  describe('a failure', () => {
    test('of the document is status 200 with its place', async () => {
      const syntax = await berth.ask('{ myself {');
      assert.equal(syntax.status, 200);
      assert.deepEqual(JSON.parse(syntax.text), {
        errors: [
          {
            message: 'Syntax Error: Expected Name, found <EOF>.',
            locations: [{ line: 1, column: 11 }],
            extensions: { code: 'MALFORMED' },
          },
        ],
        data: null,
      });
      const validation = await berth.ask('{\n  nope\n}');
      assert.equal(validation.status, 200);
      assert.deepEqual(JSON.parse(validation.text), {
        errors: [
          {
            message: 'Cannot query field "nope" on type "Query".',
            locations: [{ line: 2, column: 3 }],
            extensions: { code: 'SCHEMA' },
          },
        ],
        data: null,
      });
    });

    test('of a field has its path', async () => {
      const answer = await berth.ask('mutation { gone: deleteTemplate(templateName: "nowhere") }');
      assert.deepEqual(JSON.parse(answer.text), {
        errors: [
          {
            message: 'template "nowhere" not found',
            path: ['gone'],
            locations: [{ line: 1, column: 12 }],
            extensions: { code: 'NOT_FOUND' },
          },
        ],
        data: null,
      });
    });

    test('of one field leaves the others their answers', async () => {
      const answer = await berth.ask('{ myself { id } secret(id: "nowhere") { id } }');
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.data, { myself: { id: 'root' }, secret: null });
      assert.deepEqual(
        answer.errors.map(({ path }) => path),
        [['secret']],
      );
    });

    test('that lists several reasons lists them', async () => {
      const answer = await berth.ask(
        'mutation { saveTemplate(input: {name: "x", imageName: "a b", containerDiskInGb: -1, volumeInGb: 0}) { id } }',
      );
      assert.equal(answer.code, 'RULE');
      assert.equal(answer.errors[0]?.extensions.details?.length, 2);
    });

    test('of a variable names it and its type', async () => {
      const save = 'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }';
      assert.equal(
        (await berth.ask(save, { variables: { input: { containerDiskInGb: 'ten' } } })).message,
        'variables.input.containerDiskInGb must be a whole number of at most 32 bits (Int)',
      );
      assert.equal(
        (await berth.ask(save, { variables: { input: { env: [{ key: 'A' }, { key: 5 }] } } })).message,
        'variables.input.env[1].key must be text (String)',
      );
      assert.equal(
        (await berth.ask(save, { variables: { input: 'text' } })).message,
        'variables.input must be an object (SaveTemplateInput)',
      );
      assert.equal(
        (await berth.ask('query ($id: ID!) { secret(id: $id) { id } }')).message,
        'variables.id is required: text (ID)',
      );
      const price =
        'query ($input: GpuLowestPriceInput) { gpuTypes { lowestPrice(input: $input) { stockStatus } } }';
      assert.match(
        (await berth.ask(price, { variables: { input: { compliance: ['PIRACY'] } } })).message,
        /^variables\.input\.compliance\[0\] must be one of GDPR, .* \(Compliance\)$/,
      );
    });

    test('of a value in the document names its field and its type', async () => {
      const message = async (input: string): Promise<string> =>
        (await berth.ask(`mutation { saveTemplate(input: ${input}) { id } }`)).message;
      assert.equal(
        await message('{containerDiskInGb: "ten"}'),
        'containerDiskInGb must be a whole number of at most 32 bits (Int)',
      );
      assert.equal(
        await message('{containerDiskInGb: 10.5}'),
        'containerDiskInGb must be a whole number of at most 32 bits (Int)',
      );
      assert.equal(
        await message('{containerDiskInGb: 3000000000}'),
        'containerDiskInGb must be a whole number of at most 32 bits (Int)',
      );
      assert.equal(await message('{isPublic: "yes"}'), 'isPublic must be true or false (Boolean)');
      assert.equal(await message('{name: {a: 1}}'), 'name must be text (String)');
      assert.equal(await message('{name: ["a"]}'), 'name must be text (String)');
      assert.equal(
        await message('{env: "A=1"}'),
        'env must be a list, each entry an object (EnvironmentVariableInput)',
      );
      assert.equal(await message('5'), 'input must be an object (SaveTemplateInput)');
      assert.equal(await message('[{name: "a"}]'), 'input must be an object (SaveTemplateInput)');
      assert.match(
        (await berth.ask('{ gpuTypes { lowestPrice(input: {compliance: [PIRACY]}) { stockStatus } } }'))
          .message,
        /^compliance must be one of GDPR, /,
      );
    });

    test('is cut short where there are hundreds', async () => {
      const answer = await berth.ask('{ gpuTypes { lowestPrice(input: {gpuCount: 0}) { stockStatus } } }');
      assert.equal(answer.errors.length, 20);
      assert.match(answer.message, /gpuCount must be at least 1/);
      assert.ok(
        (await berth.ask(`{ ${Array.from({ length: 500 }, (_, index) => `nope${index}`).join(' ')} }`)).errors
          .length <= 21,
      );
    });
  });

  test('introspection is open and complete', async () => {
    const answer = await berth.ask(getIntrospectionQuery(), { key: null });
    assert.deepEqual(answer.errors, []);
    assert.match(answer.text, /"SaveTemplateInput"/);
    assert.match(
      (
        await berth.ask(
          '{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }',
          { key: null },
        )
      ).message,
      /introspection depth/i,
    );
  });

  test('a document that comes again is answered the same, also a wrong one', async () => {
    for (let round = 0; round < 3; round += 1) {
      assert.deepEqual(
        (
          await berth.ask('query ($id: String) { podTemplate(id: $id) { id } }', {
            variables: { id: 'runpod-ubuntu' },
          })
        ).data,
        { podTemplate: { id: 'runpod-ubuntu' } },
      );
      assert.match((await berth.ask('{ myself { nothing } }')).message, /Cannot query field "nothing"/);
    }
  });

  test('more documents than the cache holds are answered the same', async () => {
    for (let number = 0; number < 450; number += 1)
      assert.deepEqual((await berth.ask(`{ a${number % 225}: __typename }`)).data, {
        [`a${number % 225}`]: 'Query',
      });
  });
});

describe('limits', () => {
  let berth: GraphqlFixture;
  before(async () => {
    berth = await startGraphqlFixture({ limits: { maxDepth: 3, maxFields: 5 } });
  });
  after(() => berth.close());

  test('are read from the settings, and are named in the error', async () => {
    assert.deepEqual((await berth.ask('{ myself { networkVolumes { id name size } } }')).data, {
      myself: { networkVolumes: [] },
    });
    const deep = await berth.ask('{ myself { networkVolumes { dataCenter { id } } } }');
    assert.equal(deep.status, 200);
    assert.equal(deep.code, 'RULE');
    assert.match(deep.message, /more than 3 levels deep \(graphql\.maxDepth\)/);
    assert.match(
      (await berth.ask('{ myself { a: id b: id c: id d: id e: id } }')).message,
      /more than 5 fields \(graphql\.maxFields\)/,
    );
  });
});

describe('what must not be shown', () => {
  const secret = 'hunter2-hunter2';
  const failing = (error: Error): Pick<Secrets, 'get' | 'list'> => ({
    get: () => Promise.reject(error),
    list: () => Promise.reject(error),
  });

  test('an unexpected error is logged with its details and shown without them', async () => {
    const berth = await startGraphqlFixture({
      replace: { secrets: failing(new TypeError('the cable at 10.0.0.7 is loose')) as Secrets },
    });
    const answer = await berth.ask('{ secret(id: "x") { id } }');
    assert.equal(answer.status, 200);
    assert.equal(answer.code, 'INTERNAL');
    assert.match(answer.message, /something went wrong inside Berth; its log has the details under request/);
    assert.doesNotMatch(answer.text, /cable|TypeError|\.ts/);
    assert.match(berth.logged.join(''), /the cable at 10\.0\.0\.7 is loose.*stack/);
    await berth.close();
  });

  test('a part that does not answer is 503, and too many requests 429', async () => {
    const berth = await startGraphqlFixture({
      replace: {
        secrets: failing(
          new BerthError('unavailable', 'the database does not answer', { headers: { 'retry-after': '5' } }),
        ) as Secrets,
      },
    });
    const unavailable = await berth.ask('{ secret(id: "x") { id } }');
    assert.equal(unavailable.status, 503);
    assert.equal(unavailable.headers['retry-after'], '5');
    const partly = await berth.ask('{ countryCodes secret(id: "x") { id } }');
    assert.equal(partly.status, 200);
    assert.deepEqual(partly.data, { countryCodes: ['RO'], secret: null });
    await berth.close();

    const busy = await startGraphqlFixture({
      replace: { secrets: failing(new BerthError('rate', 'slow down')) as Secrets },
    });
    assert.equal((await busy.ask('{ secret(id: "x") { id } }')).status, 429);
    await busy.close();
  });

  test('a secret is in no answer and in no line of the log, whatever goes wrong', async () => {
    const berth = await startGraphqlFixture();
    const inline = (value: string): string =>
      `mutation { saveRegistryAuth(input: {name: "n", username: "u", password: ${value}}) { id name } }`;
    const save = 'mutation ($input: SaveRegistryAuthInput) { saveRegistryAuth(input: $input) { id name } }';
    const answers = [
      await berth.ask(inline(JSON.stringify(secret))),
      await berth.ask(inline(JSON.stringify(secret))),
      await berth.ask(inline(`{key: "${secret}"}`)),
      await berth.ask(inline(`["${secret}"]`)),
      await berth.ask(inline(`"${secret}" "${secret}"`)),
      await berth.ask(inline(`"${secret}`)),
      await berth.ask(inline(`"${secret}\\u0000"`)),
      await berth.ask(inline(`"${secret}\\q"`)),
      await berth.ask(inline(`"${secret}"`).replace('id name', 'nope')),
      await berth.ask(save, { variables: { input: { name: 'n', username: 'u', password: [secret] } } }),
      await berth.ask(save, { variables: { input: { name: 'n', username: [secret], password: secret } } }),
      await berth.ask(save, { variables: { input: secret } }),
      await berth.ask('mutation ($value: Int) { secretCreate(input: {name: "a", value: $value}) { id } }', {
        variables: { value: secret },
      }),
      await berth.ask(`mutation { secretCreate(input: {name: "bad name", value: "${secret}"}) { id } }`),
      await berth.ask(
        `mutation { secretCreate(input: {name: "a", value: "${secret}"}) { id name description } }`,
      ),
      await berth.ask(`mutation { secretValueUpdate(input: {id: "nowhere", value: "${secret}"}) { id } }`),
      await berth.post(`{"query": "${secret}`, {}, { api_key: berth.rootKey }),
      await berth.post(
        `{"query": "{ myself { id } }", "variables": "${secret}"}`,
        {},
        { api_key: berth.rootKey },
      ),
    ];
    for (const answer of answers) assert.doesNotMatch(answer.text, /hunter/, answer.text);
    assert.doesNotMatch(berth.logged.join(''), /hunter/);
    await berth.close();
  });
});
