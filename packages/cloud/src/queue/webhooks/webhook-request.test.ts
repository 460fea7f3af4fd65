import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { postWebhook } from './webhook-request.ts';
import type { WebhookTarget } from './webhook-target.ts';

const BODY = Buffer.from('{}');
const never = new AbortController().signal;

async function listening(t: TestContext, server: Server, path = '/'): Promise<WebhookTarget> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    if (server instanceof http.Server) server.closeAllConnections();
    server.close();
  });
  return {
    url: new URL(`http://receiver.test:${(server.address() as AddressInfo).port}${path}`),
    addresses: [{ address: '127.0.0.1', family: 4 }],
  };
}

/** A receiver that sends these bytes and nothing more, and optionally closes. */
function saying(text: string, hangUp: boolean): Server {
  return net.createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', () => (hangUp ? socket.end(text) : socket.write(text)));
  });
}

test('goes to the checked address, under the name of the receiver', async (t) => {
  let seen: { host: string | undefined; url: string | undefined; method: string | undefined } | undefined;
  const target = await listening(
    t,
    http.createServer(({ headers, url, method }, response) => {
      seen = { host: headers.host, url, method };
      response.writeHead(204).end();
    }),
    '/hook?a=b%20c#part',
  );
  assert.equal(await postWebhook(target, BODY, {}, never), 204);
  assert.deepEqual(seen, { host: target.url.host, url: '/hook?a=b%20c', method: 'POST' });
});

test('does not follow redirects', async (t) => {
  const seen: (string | undefined)[] = [];
  const target = await listening(
    t,
    http.createServer(({ url }, response) => {
      seen.push(url);
      response.writeHead(307, { Location: '/elsewhere' }).end();
    }),
  );
  assert.equal(await postWebhook(target, BODY, {}, never), 307);
  assert.deepEqual(seen, ['/']);
});

test('a status counts, whatever happens to the body', async (t) => {
  const endless = http.createServer((_request, response) => {
    response.on('error', () => response.destroy());
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(16_384)));
      if (!response.destroyed) response.once('drain', more);
    };
    more();
  });
  assert.equal(await postWebhook(await listening(t, endless), BODY, {}, never), 200);
  assert.equal(
    await postWebhook(
      await listening(t, saying('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab', true)),
      BODY,
      {},
      never,
    ),
    200,
  );
  assert.equal(
    await postWebhook(
      await listening(t, saying('HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\nab', false)),
      BODY,
      {},
      never,
    ),
    201,
  );
});

test('rejects where there is no answer', async (t) => {
  await assert.rejects(postWebhook(await listening(t, saying('', true)), BODY, {}, never));
  await assert.rejects(postWebhook(await listening(t, saying('hello\r\n\r\n', true)), BODY, {}, never), {
    code: 'HPE_INVALID_CONSTANT',
  });
  await assert.rejects(
    postWebhook(
      await listening(
        t,
        saying('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n', false),
      ),
      BODY,
      {},
      never,
    ),
    /without an answer/,
  );
  await assert.rejects(
    postWebhook(
      await listening(t, saying(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`, true)),
      BODY,
      {},
      never,
    ),
  );
  const closed = net.createServer();
  const target = await listening(t, closed);
  closed.close();
  await once(closed, 'close');
  await assert.rejects(postWebhook(target, BODY, {}, never), { code: 'ECONNREFUSED' });
});

test('ends when the signal is aborted', async (t) => {
  const stop = new AbortController();
  const reason = new Error('enough');
  const target = await listening(
    t,
    net.createServer((socket) => {
      socket.on('error', () => socket.destroy());
      socket.once('data', () => stop.abort(reason));
    }),
  );
  await assert.rejects(postWebhook(target, BODY, {}, stop.signal), reason);
});
