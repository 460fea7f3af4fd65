import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { waitFor } from '../../../../testing/src/wait-for.ts';
import { sendJson } from '../raw-http.ts';
import { FastPathServer } from './fast-path-server.ts';
import type { FastPathHandler } from './fast-path-connection.ts';

/** The fast path serves the paths below /v2/fast, Node the rest; both say who they are. */
describe('a server with the fast path', () => {
  let server: FastPathServer;
  let closing = false;
  let sockets: Socket[] = [];
  /** The events of a response that is too large to leave at once. */
  let events: string[];

  beforeEach(async () => {
    closing = false;
    sockets = [];
    events = [];
    const handler: FastPathHandler = {
      accepts: ({ url }) =>
        url.includes('asked') ? pause(5).then(() => url.includes('yes')) : url.startsWith('/v2/fast'),
      serveFastPath: (request, response) => {
        if (request.url.endsWith('large')) {
          for (const event of ['finish', 'close'] as const) response.on(event, () => events.push(event));
          return sendJson(response, 200, JSON.stringify('x'.repeat(50_000_000)));
        }
        return void pause(request.url.includes('slow') ? 20 : 0).then(() =>
          sendJson(response, 200, `"fast ${request.url} ${request.body}"`),
        );
      },
      get closing() {
        return closing;
      },
    };
    server = new FastPathServer({}, handler);
    server.on('request', (request, response) => {
      let body = '';
      request
        .on('data', (chunk: Buffer) => (body += chunk.toString()))
        .on('end', () => response.end(`node ${request.method} ${request.url} ${body}`));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });

  test('reads on through a large body once it is known that the fast path serves it', async () => {
    const body = 'x'.repeat(256 * 1024);
    const { socket, until } = await talk(
      `POST /v2/fast/asked/yes HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, -1)}`,
    );
    await pause(30);
    socket.write(body.slice(-1));
    await until('"fast /v2/fast/asked/yes x');
  });

  test('notifies a handler of a client that disconnects before the response is sent', async () => {
    const { socket, until } = await talk('GET /v2/fast/large HTTP/1.1\r\nHost: x\r\n\r\n');
    await until('HTTP/1.1 200');
    socket.pause();
    socket.resetAndDestroy();
    while (events.length === 0) await pause(2);
    assert.deepEqual(events, ['close']);
  });

  async function talk(
    ...pieces: string[]
  ): Promise<{ socket: Socket; heard: () => string; until: (text: string) => Promise<void> }> {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    sockets.push(socket);
    let heard = '';
    socket.setEncoding('utf8').on('data', (text: string) => (heard += text));
    await once(socket, 'connect');
    for (const piece of pieces) {
      socket.write(piece);
      await pause(2);
    }
    const until = async (text: string): Promise<void> => {
      while (!heard.includes(text)) {
        assert.ok(!socket.destroyed, `closed after ${heard}`);
        await pause(2);
      }
    };
    return { socket, heard: () => heard, until };
  }
  const post = (path: string, body: string, ...headers: string[]): string =>
    ['POST ' + path + ' HTTP/1.1', 'Host: b', `Content-Length: ${Buffer.byteLength(body)}`, ...headers]
      .map((line) => `${line}\r\n`)
      .join('') + `\r\n${body}`;

  test('serves plain requests on the fast path in order, in whatever pieces they arrive', async () => {
    const many = ['/v2/fast/slow', '/v2/fast/b', '/v2/fast/c']
      .map((path, index) => post(path, `body ${index} ö`))
      .join('');
    const { heard, until } = await talk(...(many.match(/[\s\S]{1,37}/g) ?? []));
    await until('fast /v2/fast/c body 2 ö');
    const answers = [...heard().matchAll(/"fast (\S+) (.*?)"/g)].map(([, path, body]) => `${path} ${body}`);
    assert.deepEqual(answers, ['/v2/fast/slow body 0 ö', '/v2/fast/b body 1 ö', '/v2/fast/c body 2 ö']);
    assert.match(
      heard(),
      /HTTP\/1\.1 200 OK\r\ncontent-type: application\/json; charset=utf-8\r\ncontent-length: \d+\r\ndate: .* GMT\r\nconnection: keep-alive\r\n/,
    );
  });

  test('hands any other request to Node with its connection, whole, also after requests of its own', async () => {
    const { until, heard } = await talk(
      post('/v2/fast/first', 'x') + post('/v2/other', 'for node') + post('/v2/fast/then', 'z'),
    );
    await until('node POST /v2/fast/then z');
    assert.match(
      heard(),
      /fast \/v2\/fast\/first x[\s\S]*node POST \/v2\/other for node[\s\S]*node POST \/v2\/fast\/then z/,
    );
  });

  test('hands a large body, a chunked body and any other path to Node', async () => {
    const large = 'l'.repeat(300_000);
    const one = await talk(post('/v2/fast/large', large));
    await one.until(`node POST /v2/fast/large ${large}`);
    const two = await talk(
      'POST /v2/fast/x HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
    );
    await two.until('node POST /v2/fast/x abc');
    const three = await talk('GET / HTTP/1.1\r\nHost: b\r\n\r\n');
    await three.until('node GET / ');
  });

  test('answers requests whose handler decides later', async () => {
    const { until } = await talk(post('/v2/asked/yes', '1') + post('/v2/asked/no', '2'));
    await until('node POST /v2/asked/no 2');
  });

  test('lets Node reject at once what is not HTTP', async () => {
    const { socket, until } = await talk('hello?\r\n');
    await until('HTTP/1.1 400 Bad Request');
    if (!socket.destroyed) await once(socket, 'close');
  });

  test('closes the connection of a client that asks for it', async () => {
    const { socket, until } = await talk(post('/v2/fast/last', 'x', 'Connection: close'));
    await until('connection: close');
    if (!socket.destroyed) await once(socket, 'close');
  });

  test('closes idle connections when it stops, and busy ones after their response', async () => {
    const idle = await talk(post('/v2/fast/a', 'x'));
    await idle.until('fast /v2/fast/a x');
    const busy = await talk(post('/v2/fast/slow', 'y'));
    closing = true;
    server.closeIdleConnections();
    for (const { socket } of [idle, busy]) if (!socket.destroyed) await once(socket, 'close');
    assert.match(busy.heard(), /fast \/v2\/fast\/slow y/);
  });

  test('can cut off connections during a response', async () => {
    const { socket, heard } = await talk(post('/v2/fast/slow', 'z'));
    server.closeAllConnections();
    if (!socket.destroyed) await once(socket, 'close');
    assert.equal(heard(), '');
  });
});

test('a system clock that is set forward closes no connection', async (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] });
  const answered = Promise.withResolvers<void>();
  const server = new FastPathServer(
    {},
    {
      accepts: () => true,
      serveFastPath: (_request, response) => {
        response.on('close', () => answered.resolve());
        sendJson(response, 200, '{}');
      },
      closing: false,
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  let closed = false;
  client.resume().on('close', () => (closed = true));
  context.after(() => {
    client.destroy();
    server.close();
  });
  const request = 'GET /v2/e/health HTTP/1.1\r\nHost: x\r\n\r\n';
  client.write(request);
  await answered.promise;
  context.mock.timers.tick(5_000);
  const now = Date.now();
  context.mock.method(Date, 'now', () => now + 3_600_000);
  context.mock.timers.tick(5_000);
  // A connection that was closed would not answer again.
  client.write(request);
  await once(client, 'data');
  assert.equal(closed, false);
});

test('what idle connections keep of their last requests is small', async (context) => {
  const server = new FastPathServer(
    {},
    {
      accepts: () => true,
      serveFastPath: (_request, response) => sendJson(response, 200, '{}'),
      closing: false,
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const clients: Socket[] = [];
  context.after(() => {
    for (const client of clients) client.destroy();
    server.close();
  });
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const kept = (): number => {
    collectGarbage();
    return process.memoryUsage().arrayBuffers;
  };
  const before = kept();
  for (let count = 0; count < 100; count += 1) {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    clients.push(client);
    client.write('GET /v2/e/health HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(client, 'data');
    // Of what others copy meanwhile, each connection's copy would keep a piece.
    for (let others = 0; others < 3; others += 1) Buffer.allocUnsafe(Buffer.poolSize / 3);
  }
  // Another thread frees the memory that was collected.
  await waitFor('little is kept', async () => kept() - before < 1_000_000);
});
