import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { openApiDocument } from './openapi.ts';
import type { OperationObject } from './openapi.ts';
import { operation } from './rest-operation.ts';
import { sampleApi } from './sample-api.fixture.ts';
import * as schema from './json-schema.ts';

const document = openApiDocument(sampleApi);
const at = (method: string, path: string): OperationObject => document.paths[path]![method]!;
const simple = {
  id: 'x',
  method: 'GET',
  path: '/x',
  tag: 'X',
  summary: 'X',
  access: 'read',
  status: 200,
  handle: () => Promise.resolve(),
} as const;

describe('the OpenAPI document', () => {
  test('is valid, and a linter finds nothing to improve', async () => {
    const problems = await lintFromString({
      source: JSON.stringify(document),
      absoluteRef: 'openapi.json',
      config: await createConfig({ extends: ['recommended'] }),
    });
    assert.deepEqual(
      problems.map(
        (problem) =>
          `${problem.severity} ${problem.ruleId} ${problem.location[0]?.pointer}: ${problem.message}`,
      ),
      [],
    );
  });

  test('is the same each time', () => {
    assert.equal(JSON.stringify(openApiDocument(sampleApi)), JSON.stringify(document));
    assert.deepEqual(Object.keys(document.paths), [
      '/v9/ships',
      '/v9/ships/{id}',
      '/v9/tide/{day}',
      '/v9/chart',
    ]);
    assert.deepEqual(Object.keys(document.components.schemas), [
      'Berth',
      'Cargo',
      'CreateShip',
      'Problem',
      'Ship',
    ]);
    assert.deepEqual(
      document.tags.map((tag) => tag.name),
      ['Weather', 'Ships'],
    );
    assert.deepEqual(document.servers, [{ url: 'https://harbour.test' }]);
  });

  test('refers to named schemas, in operations and within one another', () => {
    const create = at('post', '/v9/ships');
    assert.deepEqual(create.requestBody, {
      required: true,
      description: 'At most 20,000,000 bytes.',
      content: { 'application/json': { schema: { $ref: '#/components/schemas/CreateShip' } } },
    });
    const { properties, required } = document.components.schemas['Ship'] as {
      properties: Record<string, unknown>;
      required: string[];
    };
    assert.deepEqual(required, ['id', 'name', 'cargo']);
    assert.deepEqual(properties['cargo'], { $ref: '#/components/schemas/Cargo' });
    assert.deepEqual(properties['berth'], {
      anyOf: [{ $ref: '#/components/schemas/Berth' }, { type: 'null' }],
    });
    assert.deepEqual(properties['arrived'], { type: ['string', 'null'], format: 'date-time' });
    assert.deepEqual(at('get', '/v9/ships').responses['200'], {
      description: 'Done.',
      headers: { RateLimit: { $ref: '#/components/headers/RateLimit' } },
      content: {
        'application/json': {
          schema: {
            type: 'object',
            properties: { ships: { type: 'array', items: { $ref: '#/components/schemas/Ship' } } },
            required: ['ships'],
            additionalProperties: false,
          },
        },
      },
    });
  });

  test('describes path and query parameters', () => {
    assert.deepEqual(at('get', '/v9/ships/{id}').parameters, [
      {
        name: 'id',
        in: 'path',
        required: true,
        description: 'The id of the ship.',
        schema: { type: 'string' },
      },
    ]);
    assert.deepEqual(at('get', '/v9/tide/{day}').parameters, [
      { name: 'day', in: 'path', required: true, schema: { type: 'string' } },
    ]);
    assert.deepEqual(at('get', '/v9/ships').parameters, [
      {
        name: 'year',
        in: 'query',
        required: true,
        description: 'The year of arrival.',
        schema: { type: 'integer', minimum: 1900 },
      },
      {
        name: 'include',
        in: 'query',
        required: false,
        style: 'form',
        explode: false,
        description: 'What else to tell.',
        schema: { type: 'array', items: { type: 'string', enum: ['CREW', 'BERTH'] } },
      },
      {
        name: 'cargo',
        in: 'query',
        required: false,
        description: 'What it carries.',
        schema: { $ref: '#/components/schemas/Cargo' },
      },
      {
        name: 'names',
        in: 'query',
        required: false,
        style: 'form',
        explode: true,
        schema: { type: 'array', items: { type: 'string' } },
      },
      { name: 'limit', in: 'query', required: false, schema: { type: 'integer', default: 10, maximum: 100 } },
    ]);
  });

  test('defines each error response once, and needs no key for an open operation', () => {
    assert.deepEqual(Object.keys(at('post', '/v9/ships').responses), [
      '201',
      '400',
      '401',
      '403',
      '409',
      '422',
      '429',
    ]);
    assert.deepEqual(at('post', '/v9/ships').responses['409'], { $ref: '#/components/responses/Conflict' });
    assert.deepEqual(Object.keys(document.components.responses), [
      'BadRequest',
      'Unauthorized',
      'Forbidden',
      'NotFound',
      'Conflict',
      'UnprocessableEntity',
      'TooManyRequests',
    ]);
    assert.deepEqual(document.components.responses['Conflict']?.content, {
      'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
    });
    assert.deepEqual(Object.keys(document.components.responses['TooManyRequests']?.headers ?? {}), [
      'RateLimit',
      'Retry-After',
    ]);

    const open = at('get', '/v9/tide/{day}');
    assert.deepEqual(open.security, []);
    assert.deepEqual(Object.keys(open.responses), ['200', '422', '429']);
    assert.equal(at('get', '/v9/ships').security, undefined);
    assert.deepEqual(document.security, [{ bearerAuth: [] }]);
    assert.deepEqual(at('delete', '/v9/ships/{id}').responses['204'], {
      description: 'Done; there is no content.',
      headers: { RateLimit: { $ref: '#/components/headers/RateLimit' } },
    });
  });

  test('knows pages for people', () => {
    assert.deepEqual(at('get', '/v9/chart').responses['200'], {
      description: 'Done.',
      headers: { RateLimit: { $ref: '#/components/headers/RateLimit' } },
      content: { 'text/html': { schema: { type: 'string' } } },
    });
  });

  test('needs no headers', () => {
    const { responseHeaders: _, ...without } = sampleApi;
    const plain = openApiDocument(without);
    assert.deepEqual(plain.components.headers, {});
    assert.deepEqual(plain.paths['/v9/ships/{id}']?.['delete']?.responses['204'], {
      description: 'Done; there is no content.',
    });
  });

  test('is refused where the operations contradict each other', () => {
    const describing =
      (...operations: Parameters<typeof openApiDocument>[0]['operations']) =>
      () =>
        openApiDocument({ ...sampleApi, operations });
    const one = schema.named('Same', schema.object({ a: schema.text() }));
    const other = schema.named('Same', schema.object({ b: schema.text() }));
    const again = schema.named('Same', schema.object({ a: schema.text() }));
    const handle = () => Promise.resolve({ a: '', b: '' });
    assert.throws(
      describing(
        operation({ ...simple, response: one, handle }),
        operation({ ...simple, path: '/y', response: other, handle }),
      ),
      /two different schemas are named Same/,
    );
    assert.doesNotThrow(
      describing(
        operation({ ...simple, response: one, handle }),
        operation({ ...simple, path: '/y', response: again, handle }),
      ),
    );
    assert.throws(describing(operation(simple), operation(simple)), /GET \/x is described twice/);
    assert.throws(
      describing(operation({ ...simple, params: schema.object({ id: schema.text() }) })),
      /no parameter id/,
    );
  });
});
