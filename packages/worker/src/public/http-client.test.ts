import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { HttpClient } from './http-client.ts';

async function withServer(answer: http.RequestListener, use: (address: string, client: HttpClient) => Promise<void>): Promise<void> {
  const server = http.createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = new HttpClient('k');
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, client);
  } finally {
    client.close();
    server.closeAllConnections();
    server.close();
  }
}

describe('the HTTP client', () => {
  test('sends again, once and on a new connection, what went out on one that the server had closed', async () => {
    const used = new Set<unknown>();
    let requests = 0;
    await withServer(
      (request, response) => {
        requests += 1;
        if (used.has(request.socket)) request.socket.destroy();
        else response.end();
        used.add(request.socket);
      },
      async (address, client) => {
        for (let n = 0; n < 3; n += 1) assert.equal((await client.ask(address, { body: '{}', silenceMs: 5_000 })).status, 200);
        assert.deepEqual([requests, used.size], [4, 3]);
      },
    );
  });

  test('reads JSON only where it is called JSON, and a wish to be left alone', async () => {
    await withServer(
      (request, response) => {
        if (request.url === '/json') response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' }).end('{"a":"ü"}');
        else if (request.url === '/broken') response.writeHead(200, { 'content-type': 'application/json' }).end('{');
        else response.writeHead(429, { 'retry-after': '7' }).end('{}');
      },
      async (address, client) => {
        assert.deepEqual(await client.ask(`${address}json`, { silenceMs: 5_000 }), { status: 200, json: { a: 'ü' }, retryAfterMs: undefined });
        assert.deepEqual(await client.ask(`${address}broken`, { silenceMs: 5_000 }), { status: 200, json: undefined, retryAfterMs: undefined });
        assert.deepEqual(await client.ask(address, { silenceMs: 5_000 }), { status: 429, json: undefined, retryAfterMs: 7_000 });
      },
    );
  });

  test('gives up a request that is not answered, and one that is no longer wanted', async () => {
    await withServer(
      () => undefined,
      async (address, client) => {
        await assert.rejects(client.ask(address, { silenceMs: 50 }), /no answer within 0.05 s/);
        const unwanted = new AbortController();
        const asking = client.ask(address, { silenceMs: 5_000, signal: unwanted.signal });
        unwanted.abort();
        await assert.rejects(asking, /no longer wanted/);
        await assert.rejects(client.ask(address, { silenceMs: 5_000, signal: unwanted.signal }), /no longer wanted/);
      },
    );
  });

  test('reads an answer to its end once it has begun, wanted or not', async () => {
    const unwanted = new AbortController();
    await withServer(
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write('{"id":');
        unwanted.signal.addEventListener('abort', () => response.end('"x"}'));
      },
      async (address, client) => {
        subscribe('http.client.response.finish', function begun() {
          unsubscribe('http.client.response.finish', begun);
          setImmediate(() => unwanted.abort());
        });
        assert.deepEqual((await client.ask(address, { silenceMs: 5_000, signal: unwanted.signal })).json, { id: 'x' });
      },
    );
  });

  test('reads an answer that came while the process was too busy to read, and longer so than it waits', async () => {
    const server = new Worker(
      `const { parentPort } = require('node:worker_threads');
       const server = require('node:http').createServer((request, response) => {
         parentPort.postMessage('asked');
         response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"x"}');
       });
       server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`,
      { eval: true },
    );
    const [port] = (await once(server, 'message')) as [number];
    const client = new HttpClient('');
    const asking = client.ask(`http://127.0.0.1:${port}/`, { silenceMs: 100 });
    await once(server, 'message');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
    assert.deepEqual((await asking).json, { id: 'x' });
    client.close();
    await server.terminate();
  });
});
