import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request as ask } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, test } from 'node:test';
import {
  closedPort,
  latch,
  createGatewayFixture,
  readAll,
  waitUntilStable,
  waitUntil,
} from './gateway.fixture.ts';
import type { GatewayFixture, TestWorker } from './gateway.fixture.ts';

const MAGIC = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const acceptOf = (key: string): string =>
  createHash('sha1')
    .update(key + MAGIC)
    .digest('base64');

/** A text frame, short enough for a length of seven or sixteen bits. */
function frame(text: string, masked: boolean): Buffer {
  const body = Buffer.from(text);
  const bit = masked ? 0x80 : 0;
  const head =
    body.length < 126
      ? Buffer.from([0x81, bit | body.length])
      : Buffer.from([0x81, bit | 126, body.length >> 8, body.length & 0xff]);
  if (!masked) return Buffer.concat([head, body]);
  const mask = randomBytes(4);
  return Buffer.concat([head, mask, body.map((byte, at) => byte ^ (mask[at & 3] ?? 0))]);
}

/** Calls back with the text of every frame. */
function onFrames(socket: Socket, head: Buffer, tell: (text: string) => void): void {
  let rest = head;
  const read = (bytes: Buffer): void => {
    rest = Buffer.concat([rest, bytes]);
    for (;;) {
      if (rest.length < 2) return;
      const masked = ((rest[1] ?? 0) & 0x80) !== 0;
      let length = (rest[1] ?? 0) & 0x7f;
      let at = 2;
      if (length === 126) {
        if (rest.length < 4) return;
        length = rest.readUInt16BE(2);
        at = 4;
      }
      const mask = masked ? rest.subarray(at, at + 4) : undefined;
      if (masked) at += 4;
      if (rest.length < at + length) return;
      const body = rest.subarray(at, at + length).map((byte, index) => byte ^ (mask?.[index & 3] ?? 0));
      rest = rest.subarray(at + length);
      tell(Buffer.from(body).toString());
    }
  };
  socket.on('data', read);
  read(Buffer.alloc(0));
}

interface Client {
  socket: Socket;
  response: IncomingMessage;
  say(text: string): void;
  next(): Promise<string>;
}

describe('other protocols through the gateway', () => {
  let fixture: GatewayFixture;
  let worker: TestWorker;
  let sockets: Socket[];

  beforeEach(async () => {
    sockets = [];
    fixture = await createGatewayFixture({ limits: { waitMs: 5_000, requestMs: 10_000 } });
    worker = await fixture.worker('w1', (_request, response) => response.writeHead(200).end('plain'));
    worker.server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      socket.on('error', () => socket.destroy());
      sockets.push(socket);
      socket.on('end', () => socket.end());
      if (request.url === '/refuse')
        return socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\nX-Why: because\r\n\r\nno way');
      if (request.url === '/drop') return socket.destroy();
      if (request.url === '/lines') {
        socket.write(
          'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: lines/1\r\n\r\nhello',
        );
        if (head.length > 0) socket.write(head);
        socket.pipe(socket);
        return;
      }
      assert.equal(request.headers.upgrade, 'websocket');
      assert.equal(request.headers['x-forwarded-for'], '127.0.0.1');
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
          `Sec-WebSocket-Accept: ${acceptOf(request.headers['sec-websocket-key'] ?? '')}\r\n\r\n`,
      );
      onFrames(socket, head, (text) => socket.write(frame(`${request.url} ${text}`, false)));
    });
  });
  afterEach(() => fixture.close());

  const open = async (path: string, headers: Record<string, string> = {}): Promise<Client> => {
    const key = randomBytes(16).toString('base64');
    const outgoing = ask({
      host: '127.0.0.1',
      port: fixture.port,
      agent: false,
      path: `${fixture.base}${path}`,
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': key,
        authorization: fixture.key,
        ...headers,
      },
    });
    outgoing.end();
    const [response, socket, head] = (await Promise.race([
      once(outgoing, 'upgrade'),
      once(outgoing, 'response').then(([refused]) => {
        throw Object.assign(new Error('refused'), { refused: refused as IncomingMessage });
      }),
    ])) as [IncomingMessage, Socket, Buffer];
    assert.equal(response.headers['sec-websocket-accept'], acceptOf(key));
    const heard: string[] = [];
    let wake = (): void => undefined;
    onFrames(socket, head, (text) => {
      heard.push(text);
      wake();
    });
    socket.on('error', () => socket.destroy());
    return {
      socket,
      response,
      say: (text) => void socket.write(frame(text, true)),
      next: async () => {
        while (heard.length === 0) await new Promise<void>((resolve) => (wake = resolve));
        return heard.shift() ?? '';
      },
    };
  };
  const refusal = async (
    path: string,
    headers?: Record<string, string>,
  ): Promise<{ status: number; text: string; headers: IncomingMessage['headers'] }> => {
    const { refused } = await open(path, headers).then(
      () => assert.fail('it was let in'),
      (error: Error & { refused: IncomingMessage }) => error,
    );
    let text = '';
    for await (const chunk of refused) text += String(chunk);
    return { status: refused.statusCode ?? 0, text, headers: refused.headers };
  };

  test('a WebSocket opens, talks both ways and names its worker', async () => {
    const client = await open('/chat?room=1');
    assert.equal(client.response.headers['x-runpod-worker-id'], 'w1');
    for (let number = 0; number < 100; number += 1) {
      client.say(String(number));
      assert.equal(await client.next(), `/chat?room=1 ${number}`);
    }
    client.say('x'.repeat(60_000));
    assert.equal((await client.next()).length, 60_000 + '/chat?room=1 '.length);
    client.socket.destroy();
  });

  test('100 at the same time each get their own answers, and count until they close', async () => {
    const clients = await Promise.all(Array.from({ length: 100 }, (_, number) => open(`/${number}`)));
    assert.equal(fixture.gateway.demand('ep1'), 100);
    await Promise.all(
      clients.map(async (client, number) => {
        for (let count = 0; count < 20; count += 1) client.say(`${number}.${count}`);
        for (let count = 0; count < 20; count += 1)
          assert.equal(await client.next(), `/${number} ${number}.${count}`);
      }),
    );
    for (const { socket } of clients) socket.end();
    await waitUntil(() => fixture.gateway.demand('ep1') === 0);
    assert.equal(fixture.pool.demands.at(-1), 0);
    await waitUntil(() => worker.connections.size === 0);
  });

  test('an open one takes a place: the next waits until it closes', async () => {
    fixture.endpoint.scalerValue = 1;
    const first = await open('/first');
    const second = open('/second');
    await waitUntil(() => fixture.gateway.demand('ep1') === 2);
    assert.deepEqual([...fixture.gateway.inFlightByWorker('ep1')], [['w1', 1]]);
    first.socket.destroy();
    const client = await second;
    client.say('hello');
    assert.equal(await client.next(), '/second hello');
    client.socket.destroy();
  });

  test('when the worker closes, the client is closed after all data has arrived', async () => {
    const client = await open('/bye');
    const closed = once(client.socket, 'close');
    const [far] = sockets;
    far?.end(frame('last words', false));
    assert.equal(await client.next(), 'last words');
    await closed;
    await waitUntil(() => fixture.gateway.demand('ep1') === 0);
  });

  test('when the client disconnects, the connection to the worker is closed', async () => {
    const client = await open('/gone');
    const [far] = sockets;
    const closed = once(far as Socket, 'close');
    client.socket.resetAndDestroy();
    await closed;
    await waitUntil(() => fixture.gateway.demand('ep1') === 0);
  });

  test('any protocol is passed through, with data that either side sends first', async () => {
    const socket = await fixture.raw(
      `GET ${fixture.base}/lines HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${fixture.key}\r\n` +
        `Connection: Upgrade\r\nUpgrade: lines/1\r\n\r\nearly`,
    );
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
    await waitUntil(() => text.endsWith('helloearly'));
    assert.match(
      text,
      /^HTTP\/1\.1 101 Switching Protocols\r\nX-Runpod-Worker-Id: w1\r\nConnection: Upgrade\r\nUpgrade: lines\/1\r\nX-Request-Id: [\da-f-]{36}\r\n\r\nhelloearly$/,
    );
    socket.end(' bye');
    await once(socket, 'end');
    assert.ok(text.endsWith('helloearly bye'));
  });

  test('a worker that does not agree answers as to any request', async () => {
    const { status, text, headers } = await refusal('/refuse');
    assert.deepEqual(
      [status, text, headers['x-why'], headers['x-runpod-worker-id']],
      [403, 'no way', 'because', 'w1'],
    );
    const plain = await fixture.worker('w2', (_request, response) =>
      response.writeHead(200).end('x'.repeat(1_000_000)),
    );
    fixture.pool.remove('w1');
    const ignored = await refusal('/anything');
    assert.deepEqual([ignored.status, ignored.text.length], [200, 1_000_000]);
    assert.equal(plain.opened, 1);
    await waitUntil(() => fixture.gateway.demand('ep1') === 0);
  });

  test('an offer to upgrade to another HTTP version is ignored: the request is answered with its body', async () => {
    const seen: Record<string, unknown>[] = [];
    await fixture.worker('h1', (request, response) => {
      seen.push(request.headers);
      request.pipe(response);
    });
    fixture.pool.remove('w1');
    fixture.pool.remove('w2');
    for (const upgrade of ['h2c', 'H2C, HTTP/2.0', 'TLS/1.2']) {
      const { status, text, headers } = await fixture.send(
        '/up',
        {
          method: 'POST',
          headers: {
            connection: 'Upgrade, HTTP2-Settings',
            upgrade,
            'http2-settings': 'AAMAAABkAAQAoAAAAAIAAAAA',
          },
        },
        'all of it',
      );
      assert.deepEqual([status, text, headers['x-runpod-worker-id']], [200, 'all of it', 'h1']);
    }
    assert.deepEqual(
      seen.map((headers) => [headers['upgrade'], headers['http2-settings']]),
      [
        [undefined, undefined],
        [undefined, undefined],
        [undefined, undefined],
      ],
    );
  });

  test('it is refused without a key, on a wrong endpoint, and where the worker hangs up', async () => {
    assert.equal((await refusal('/', { authorization: 'wrong' })).status, 401);
    assert.equal((await refusal('/', { authorization: fixture.strangersKey })).status, 404);
    const dropped = await refusal('/drop');
    assert.equal(dropped.status, 502);
    assert.equal(typeof (JSON.parse(dropped.text) as { error: unknown }).error, 'string');
    assert.equal((await refusal('/', { 'x-runpod-worker-id': 'strict nobody' })).status, 404);
  });

  test('it waits for a worker, and leaves the room when its client does', async () => {
    fixture.pool.remove('w1');
    const socket = await fixture.raw(
      `GET ${fixture.base}/ HTTP/1.1\r\nHost: x\r\nAuthorization: ${fixture.key}\r\nConnection: Upgrade\r\n` +
        `Upgrade: websocket\r\n\r\n`,
    );
    await waitUntil(() => fixture.gateway.demand('ep1') === 1);
    socket.destroy();
    await waitUntil(() => fixture.gateway.demand('ep1') === 0);
    const waiting = open('/late');
    await waitUntil(() => fixture.gateway.demand('ep1') === 1);
    fixture.pool.add(worker);
    const client = await waiting;
    client.say('x');
    assert.equal(await client.next(), '/late x');
    client.socket.destroy();
  });

  test('a worker that cannot be reached is passed over', async () => {
    fixture.pool.remove('w1');
    fixture.pool.add({ id: 'dead', host: '127.0.0.1', port: await closedPort() }, worker);
    const clients = await Promise.all([open('/1'), open('/2'), open('/3')]);
    for (const { response, socket } of clients) {
      assert.equal(response.headers['x-runpod-worker-id'], 'w1');
      socket.destroy();
    }
  });

  test('a slow reader slows the other side down', async () => {
    const begun = latch();
    worker.server.removeAllListeners('upgrade');
    let written = 0;
    worker.server.on('upgrade', async (_request, socket: Socket) => {
      socket.on('error', () => socket.destroy());
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
      for (; written < 40_000_000; written += 65_536)
        if (!socket.write(Buffer.alloc(65_536))) {
          begun.open();
          await once(socket, 'drain');
        }
      socket.end();
    });
    const socket = await fixture.raw(
      `GET ${fixture.base}/ HTTP/1.1\r\nHost: x\r\nAuthorization: ${fixture.key}\r\nConnection: Upgrade\r\n` +
        `Upgrade: x\r\n\r\n`,
    );
    socket.pause();
    await begun.opened;
    await waitUntilStable(() => written);
    assert.ok(written < 30_000_000, `${written} bytes were written that nobody has read`);
    socket.resume();
    assert.ok((await readAll(socket)).length > 40_000_000);
  });

  test('when the server stops, open connections are closed', async () => {
    const client = await open('/');
    const closed = once(client.socket, 'close');
    fixture.gateway.close();
    await closed;
  });
});
