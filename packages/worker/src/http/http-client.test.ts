import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { HttpClient, InvalidRequestError } from './http-client.ts';

const LIMIT = { timeout: 15_000 };

async function withServer(
  answer: http.RequestListener,
  use: (address: string, client: HttpClient) => Promise<void>,
  client = new HttpClient('k', 3_000),
): Promise<void> {
  const server = http.createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, client);
  } finally {
    client.close();
    server.closeAllConnections();
    server.close();
  }
}

/** Calls back when the next response has started. */
function onceAnswering(callback: () => void): void {
  subscribe('http.client.response.finish', function begun() {
    unsubscribe('http.client.response.finish', begun);
    setImmediate(callback);
  });
}

/**
 * A server in its own thread, which answers while this one is blocked. It posts its port, and then a message
 * after each answer.
 */
async function withThread(
  answer: string,
  use: (address: string, thread: Worker, client: HttpClient) => Promise<void>,
): Promise<void> {
  const client = new HttpClient('', 3_000);
  const thread = new Worker(
    `const { parentPort } = require('node:worker_threads');
     const server = require('node:http').createServer((request, response) => {
       ${answer}
       parentPort.postMessage('answered');
     });
     server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`,
    { eval: true },
  );
  try {
    const [port] = (await once(thread, 'message')) as [number];
    await use(`http://127.0.0.1:${port}/`, thread, client);
  } finally {
    client.close();
    await thread.terminate();
  }
}

function beBusy(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

describe('the HTTP client', () => {
  test('resends once, on a new connection, a request sent on one that the server had closed', async () => {
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
        for (let n = 0; n < 3; n += 1)
          assert.equal((await client.request(address, { body: '{}', idleTimeoutMs: 5_000 })).status, 200);
        assert.deepEqual([requests, used.size], [4, 3]);
      },
    );
  });

  test('parses JSON only with a JSON content type, and reads Retry-After', async () => {
    await withServer(
      (request, response) => {
        if (request.url === '/json')
          response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' }).end('{"a":"ü"}');
        else if (request.url === '/broken')
          response.writeHead(200, { 'content-type': 'application/json' }).end('{');
        else response.writeHead(429, { 'retry-after': '7' }).end('{}');
      },
      async (address, client) => {
        assert.deepEqual(await client.request(`${address}json`, { idleTimeoutMs: 5_000 }), {
          status: 200,
          json: { a: 'ü' },
          retryAfterMs: undefined,
        });
        assert.deepEqual(await client.request(`${address}broken`, { idleTimeoutMs: 5_000 }), {
          status: 200,
          json: undefined,
          retryAfterMs: undefined,
        });
        assert.deepEqual(await client.request(address, { idleTimeoutMs: 5_000 }), {
          status: 429,
          json: undefined,
          retryAfterMs: 7_000,
        });
      },
    );
  });

  test('gives up a request that is not answered, and one that is aborted', async () => {
    await withServer(
      () => undefined,
      async (address, client) => {
        await assert.rejects(client.request(address, { idleTimeoutMs: 50 }), /no answer within 0.05 s/);
        const unwanted = new AbortController();
        const asking = client.request(address, { idleTimeoutMs: 5_000, signal: unwanted.signal });
        unwanted.abort();
        await assert.rejects(asking, /no longer wanted/);
        await assert.rejects(
          client.request(address, { idleTimeoutMs: 5_000, signal: unwanted.signal }),
          /no longer wanted/,
        );
      },
    );
  });

  test('reads a response to its end once it has started, wanted or not', async () => {
    const unwanted = new AbortController();
    await withServer(
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write('{"id":');
        unwanted.signal.addEventListener('abort', () => response.end('"x"}'));
      },
      async (address, client) => {
        onceAnswering(() => unwanted.abort());
        assert.deepEqual(
          (await client.request(address, { idleTimeoutMs: 5_000, signal: unwanted.signal })).json,
          {
            id: 'x',
          },
        );
      },
    );
  });

  test('waits a limited time for the rest of a response that is no longer wanted', LIMIT, async () => {
    await withServer(
      (_request, response) => void response.write(' '),
      async (address, client) => {
        const unwanted = new AbortController();
        onceAnswering(() => unwanted.abort());
        await assert.rejects(
          client.request(address, { idleTimeoutMs: 60_000, signal: unwanted.signal }),
          /no longer wanted, and the answer did not come whole/,
        );
      },
      new HttpClient('k', 50),
    );
  });

  test(
    'reads such a response for as long as it takes with a signal that aborts only before it starts',
    LIMIT,
    async () => {
      const unwanted = new AbortController();
      await withServer(
        (_request, response) => {
          response.writeHead(200, { 'content-type': 'application/json' });
          response.write('{"id":');
          unwanted.signal.addEventListener('abort', () => setTimeout(() => response.end('"x"}'), 100));
        },
        async (address, client) => {
          onceAnswering(() => unwanted.abort());
          assert.deepEqual(
            (await client.request(address, { idleTimeoutMs: 60_000, signalBeforeResponse: unwanted.signal }))
              .json,
            { id: 'x' },
          );
          await assert.rejects(
            client.request(address, { idleTimeoutMs: 60_000, signalBeforeResponse: unwanted.signal }),
            /no longer wanted/,
          );
        },
        new HttpClient('k', 10),
      );
    },
  );

  test(
    'reads a response that came while the event loop was blocked for longer than the timeout',
    LIMIT,
    async () => {
      await withThread(
        `response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"x"}');`,
        async (address, thread, client) => {
          const asking = client.request(address, { idleTimeoutMs: 100 });
          await once(thread, 'message');
          beBusy(300);
          assert.deepEqual((await asking).json, { id: 'x' });
        },
      );
    },
  );

  test('gives up a response that then falls silent', LIMIT, async () => {
    await withThread(`response.write(' ');`, async (address, thread, client) => {
      // Awaited from the start: on a slow machine it may give up before the message is here.
      const refused = assert.rejects(
        client.request(address, { idleTimeoutMs: 100 }),
        /no answer within 0.1 s/,
      );
      await once(thread, 'message');
      beBusy(300);
      await refused;
    });
  });

  test(
    'follows redirects with the method and the body, and sends the key to no other host',
    LIMIT,
    async () => {
      const heard: (string | undefined)[][] = [];
      const listen: http.RequestListener = (request, response) => {
        const { port } = request.socket.address() as AddressInfo;
        let text = '';
        request.on('data', (part: Buffer) => (text += part.toString()));
        request.on('end', () => {
          heard.push([request.method, request.url, request.headers.authorization, text]);
          const [, status, ...rest] = (request.url ?? '').split('/');
          if (status === '') response.end();
          else if (status === 'away')
            response.writeHead(307, { location: `http://localhost:${port}/308/` }).end();
          else response.writeHead(Number(status), { location: `/${rest.join('/')}` }).end();
        });
      };
      await withServer(listen, async (address, client) => {
        assert.equal(
          (await client.request(`${address}301/302/303/307/308/`, { idleTimeoutMs: 5_000 })).status,
          200,
        );
        assert.deepEqual(heard.splice(0).at(-1), ['GET', '/', 'k', '']);
        assert.equal(
          (await client.request(`${address}307/308/`, { body: '{}', idleTimeoutMs: 5_000 })).status,
          200,
        );
        assert.deepEqual(
          heard.splice(0),
          ['/307/308/', '/308/', '/'].map((url) => ['POST', url, 'k', '{}']),
        );
        assert.equal(
          (await client.request(`${address}away`, { body: '{}', idleTimeoutMs: 5_000 })).status,
          200,
        );
        assert.deepEqual(heard.splice(0), [
          ['POST', '/away', 'k', '{}'],
          ['POST', '/308/', undefined, '{}'],
          ['POST', '/', undefined, '{}'],
        ]);
        for (const status of [301, 302, 303])
          assert.equal(
            (await client.request(`${address}${status}/`, { body: '{}', idleTimeoutMs: 5_000 })).status,
            status,
          );
        assert.equal(heard.length, 3);
      });
    },
  );

  test('follows ten redirects and no more', LIMIT, async () => {
    let requests = 0;
    let lastOne = 11;
    await withServer(
      (_request, response) => {
        requests += 1;
        response.writeHead(requests === lastOne ? 200 : 307, { location: '/' }).end();
      },
      async (address, client) => {
        assert.equal((await client.request(address, { idleTimeoutMs: 5_000 })).status, 200);
        [requests, lastOne] = [0, 12];
        assert.equal((await client.request(address, { idleTimeoutMs: 5_000 })).status, 307);
        assert.equal(requests, 11);
      },
    );
  });

  test(
    'leaves out an id that is not valid in a header, and reports a request that cannot be built',
    LIMIT,
    async () => {
      const ids: unknown[] = [];
      await withServer(
        (request, response) => {
          ids.push(request.headers['x-request-id'], request.headers['berth-chunk']);
          response.end();
        },
        async (address, client) => {
          await client.request(address, { jobId: 'job-1', chunkId: 'a~1', idleTimeoutMs: 5_000 });
          await client.request(address, { jobId: 'job\u20131', chunkId: 'a\n~1', idleTimeoutMs: 5_000 });
          assert.deepEqual(ids, ['job-1', 'a~1', undefined, undefined]);
          await assert.rejects(
            new HttpClient('a\nb', 3_000).request(address, { idleTimeoutMs: 5_000 }),
            InvalidRequestError,
          );
          await assert.rejects(client.request('nowhere', { idleTimeoutMs: 5_000 }), InvalidRequestError);
        },
      );
    },
  );
});
