import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Fastify from 'fastify';
import type { FastifyInstance } from 'fastify';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import type { Caller } from '../../domain/caller.ts';
import { Authenticator } from '../../auth/authenticator.ts';
import { ApiKeys } from '../../resources/keys/api-keys.ts';
import { BerthError } from '../../support/errors.ts';
import { restApiRoutes } from './rest-api.routes.ts';
import { operation } from './rest-operation.ts';
import { RestRateLimits } from './rest-rate-limits.ts';
import { integer, object, text } from './json-schema.ts';

const byId = object({ id: text() });
/** Who called, and what each operation received. */
const calls: { caller: Caller; params: unknown; query: unknown; body: unknown }[] = [];
const PIECE_BYTES = 65_536;
/** What was read of uploads. */
let loadedBytes = 0;
const shared = { tag: 'Ships', summary: 'S' };
const operations = [
  operation({
    ...shared,
    id: 'listShips',
    method: 'GET',
    path: '/ships',
    access: 'read',
    query: object({}, { limit: integer({ minimum: 1 }) }),
    status: 200,
    response: object({ seen: integer() }),
    handle: async (call) => ({ seen: calls.push(call) }),
  }),
  operation({
    ...shared,
    id: 'createShip',
    method: 'POST',
    path: '/ships',
    access: 'write',
    body: object({ name: text() }),
    status: 201,
    response: object({ seen: integer() }),
    handle: async (call) => ({ seen: calls.push(call) }),
  }),
  operation({
    ...shared,
    id: 'paintShip',
    method: 'POST',
    path: '/ships/{id}/paint',
    access: 'write',
    params: byId,
    body: object({ colour: text() }),
    bodyLimit: 5000,
    status: 200,
    response: object({ seen: integer() }),
    handle: async (call) => ({ seen: calls.push(call) }),
  }),
  operation({
    ...shared,
    id: 'loadShip',
    method: 'PUT',
    path: '/ships/cargo',
    access: 'write',
    upload: 'application/octet-stream',
    status: 204,
    handle: async ({ upload }) => {
      for await (const piece of upload as AsyncIterable<Buffer>) loadedBytes += piece.length;
    },
  }),
  operation({
    ...shared,
    id: 'sinkShip',
    method: 'DELETE',
    path: '/ships/{id}',
    access: 'write',
    params: byId,
    status: 204,
    handle: async (call) => void calls.push(call),
  }),
  operation({
    ...shared,
    id: 'listHarbours',
    method: 'GET',
    path: '/harbours',
    access: 'operator',
    status: 200,
    response: object({}),
    handle: async () => ({}),
  }),
  operation({
    ...shared,
    id: 'getTide',
    method: 'GET',
    path: '/tide',
    access: 'open',
    status: 200,
    response: object({}),
    handle: async () => ({}),
  }),
  operation({
    ...shared,
    id: 'getChart',
    method: 'GET',
    path: '/chart',
    access: 'open',
    text: 'text/html',
    status: 200,
    handle: async () => '<p>',
  }),
  operation({
    ...shared,
    id: 'breakMast',
    method: 'GET',
    path: '/mast',
    access: 'open',
    status: 200,
    handle: async () => Promise.reject(new Error('hunter2')),
  }),
];

describe('a REST interface', () => {
  let context: ServiceContext;
  let app: FastifyInstance;
  let full: string;
  let readOnly: string;
  let closed: BerthError | undefined;
  const perMinute = 1000;

  before(async () => {
    context = await createServiceContext();
    const keys = new ApiKeys(context);
    const ann = await context.account('ann');
    full = (await keys.create(ann, { name: 'full', access: 'all' })).key;
    readOnly = (await keys.create(ann, { name: 'read', access: 'read-only' })).key;
    const limiter = new RestRateLimits([{ name: 'minute', seconds: 60, quota: perMinute }], context.clock);
    app = Fastify();
    await app.register(
      restApiRoutes(
        {
          prefix: '/v9',
          interface: 'rest-v2',
          operations,
          bodyLimit: 100,
          sendError: (reply, error) =>
            reply
              .code(499)
              .headers(error.headers)
              .send({ code: error.code, message: error.message, details: error.details }),
          headers: () => ({ 'x-age': 'old' }),
          checkRateLimit: (caller) => limiter.consume(caller.keyId ?? ''),
          disabledError: () => closed,
        },
        new Authenticator(context),
      ),
      { prefix: '/v9' },
    );
  });
  after(async () => {
    await app.close();
    await context.close();
  });

  const send = async (
    method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH' | 'OPTIONS',
    path: string,
    {
      key,
      body,
      headers = {},
    }: { key?: string | undefined; body?: string | object; headers?: Record<string, string> } = {},
  ) => {
    const answer = await app.inject({
      method,
      url: `/v9${path}`,
      headers: { ...(key !== undefined && { authorization: `Bearer ${key}` }), ...headers },
      ...(body !== undefined && { payload: body }),
    });
    return {
      status: answer.statusCode,
      headers: answer.headers,
      text: answer.body,
      ...(answer.body.startsWith('{')
        ? (JSON.parse(answer.body) as { code?: string; details?: string[]; message?: string })
        : {}),
    };
  };

  test('reads the uploads of an account piece by piece, one in a turn of the event loop', async () => {
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    const headers = { authorization: `Bearer ${full}`, 'content-type': 'application/octet-stream' };
    const body = Buffer.alloc(20 * PIECE_BYTES);
    const uploads = Array.from({ length: 20 }, () =>
      fetch(`${url}/v9/ships/cargo`, { method: 'PUT', headers, body }),
    );
    let most = 0;
    while (loadedBytes < uploads.length * body.length) {
      const before = loadedBytes;
      await new Promise((resolve) => setImmediate(resolve));
      // Each of them begins with pieces of its own.
      if (before >= uploads.length * 2 * PIECE_BYTES) most = Math.max(most, loadedBytes - before);
    }
    for (const { status } of await Promise.all(uploads)) assert.equal(status, 204);
    assert.ok(most <= 4 * PIECE_BYTES, `${most} bytes in a turn`);
  });

  test('hands an operation who calls and what was sent, checked', async () => {
    calls.length = 0;
    assert.equal((await send('GET', '/ships?limit=5&other=x', { key: readOnly })).status, 200);
    assert.equal(
      (await send('POST', '/ships/s%201/paint', { key: full, body: { colour: 'red' } })).status,
      200,
    );
    const [listed, painted] = calls;
    assert.deepEqual(
      [listed?.query, listed?.body, listed?.caller.interface, listed?.caller.fullAccess],
      [{ limit: 5 }, undefined, 'rest-v2', false],
    );
    assert.deepEqual(
      [{ ...(painted?.params as object) }, painted?.body, painted?.caller.fullAccess],
      [{ id: 's 1' }, { colour: 'red' }, true],
    );
  });

  test('answers with the status of the operation; 204 has neither body nor type', async () => {
    const made = await send('POST', '/ships', { key: full, body: { name: 'a' } });
    assert.deepEqual([made.status, made.headers['content-type']], [201, 'application/json; charset=utf-8']);
    const sunk = await send('DELETE', '/ships/s1', { key: full });
    assert.deepEqual([sunk.status, sunk.text, sunk.headers['content-type']], [204, '', undefined]);
    const chart = await send('GET', '/chart');
    assert.deepEqual([chart.text, chart.headers['content-type']], ['<p>', 'text/html; charset=utf-8']);
  });

  test('asks for a key first, then for the right to do this, and never reads a body before', async () => {
    calls.length = 0;
    for (const key of [undefined, 'unknown'])
      assert.equal(
        (
          await send('POST', '/ships', {
            key,
            body: 'not json',
            headers: { 'content-type': 'application/json' },
          })
        ).code,
        'unauthenticated',
      );
    assert.equal(
      (
        await send('POST', '/ships', {
          key: readOnly,
          body: 'not json',
          headers: { 'content-type': 'application/json' },
        })
      ).code,
      'forbidden',
    );
    assert.equal((await send('GET', '/harbours', { key: full })).code, 'forbidden');
    assert.equal((await send('GET', '/tide')).status, 200);
    assert.deepEqual(calls, []);
  });

  test('refuses what cannot be read, each thing by its name', async () => {
    calls.length = 0;
    const post = async (
      body: string,
      headers: Record<string, string> = { 'content-type': 'application/json' },
    ) => (await send('POST', '/ships', { key: full, body, headers })).code;
    assert.equal(await post('{'), 'malformed');
    assert.equal(await post('{"name":"\\u0000"}'), 'malformed');
    assert.equal(await post('{"name":1}'), 'schema');
    assert.equal(await post('{"name":"a","more":1}'), 'schema');
    assert.equal(await post(''), 'schema');
    assert.equal(await post('null'), 'schema');
    assert.equal(await post('{"name":"a"}', { 'content-type': 'text/plain' }), 'media-type');
    assert.equal(await post('{"name":"a"}', {}), 'media-type');
    assert.equal((await send('GET', '/ships?limit=x', { key: full })).code, 'schema');
    assert.equal((await send('GET', '/ships?limit=%00', { key: full })).code, 'malformed');
    assert.equal((await send('DELETE', '/ships/%00', { key: full })).code, 'malformed');
    assert.deepEqual(calls, []);
  });

  test('reads bodies up to the limit of the interface, or of the operation', async () => {
    const long = (length: number): string => JSON.stringify({ name: 'x'.repeat(length - 11) });
    assert.equal(
      (
        await send('POST', '/ships', {
          key: full,
          body: long(100),
          headers: { 'content-type': 'application/json' },
        })
      ).status,
      201,
    );
    assert.equal(
      (
        await send('POST', '/ships', {
          key: full,
          body: long(101),
          headers: { 'content-type': 'application/json' },
        })
      ).code,
      'too-large',
    );
    assert.equal(
      (await send('POST', '/ships/s1/paint', { key: full, body: { colour: 'x'.repeat(4000) } })).status,
      200,
    );
    assert.equal(
      (await send('POST', '/ships/s1/paint', { key: full, body: { colour: 'x'.repeat(5000) } })).code,
      'too-large',
    );
    assert.equal(
      (await send('POST', '/ships', { body: long(101), headers: { 'content-type': 'application/json' } }))
        .code,
      'too-large',
    );
  });

  test('distinguishes an unknown path from an unknown method', async () => {
    const put = await send('PUT', '/ships', { key: full });
    assert.deepEqual([put.code, put.headers['allow']], ['method', 'GET, POST']);
    const options = await send('OPTIONS', '/ships/s1');
    assert.deepEqual([options.code, options.headers['allow']], ['method', 'DELETE']);
    for (const path of ['', '/', '/ship', '/ships/', '/ships/s1/paint/x']) {
      const answer = await send('GET', path, { key: full });
      assert.deepEqual([answer.code, answer.headers['allow']], ['no-route', undefined], path);
    }
  });

  test('counts every call of a known key in its headers', async () => {
    const left = async (path: string, key?: string): Promise<number> =>
      Number(/r=(\d+)/.exec(String((await send('GET', path, { key })).headers['ratelimit']))?.[1]);
    const before = await left('/ships', full);
    assert.equal(await left('/ships?limit=x', full), before - 1);
    assert.equal(await left('/harbours', full), before - 2);
    assert.equal(await left('/ships', full), before - 3);
    assert.ok(Number.isNaN(await left('/ships', 'unknown')));
    assert.ok(Number.isNaN(await left('/tide', full)));
  });

  test('does not show internal errors', async () => {
    const broken = await send('GET', '/mast');
    assert.equal(broken.code, 'internal');
    assert.doesNotMatch(broken.text, /hunter2|at /);
  });

  test('carries its own headers on every answer, and closes as a whole', async () => {
    for (const path of ['/tide', '/ships', '/mast', '/unknown'])
      assert.equal((await send('GET', path)).headers['x-age'], 'old', path);
    closed = new BerthError('retired', 'gone');
    for (const path of ['/tide', '/ships', '/unknown', '']) {
      const answer = await send('GET', path, { key: full });
      assert.deepEqual([answer.code, answer.headers['x-age']], ['retired', 'old'], path);
    }
    closed = undefined;
  });
});
