import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, beforeEach, describe, test } from 'node:test';
import {
  readResponse,
  closedPort,
  createGatewayFixture,
  readAll,
  stopWorker,
  waitUntil,
} from './gateway.fixture.ts';
import type { GatewayFixture } from './gateway.fixture.ts';

const ok = (_request: IncomingMessage, response: ServerResponse): void => void response.end('ok');

describe('when something goes wrong', () => {
  let fixture: GatewayFixture;
  const servers: Server[] = [];

  beforeEach(async () => {
    fixture = await createGatewayFixture({ limits: { bodyBytes: 100_000 } });
  });
  const withLittleTime = async (): Promise<void> => {
    await fixture.close();
    fixture = await createGatewayFixture({ limits: { requestMs: 150 } });
  };
  afterEach(async () => {
    await fixture.close();
    for (const server of servers.splice(0)) server.close();
  });

  /** A worker that answers with bytes. */
  const rawWorker = async (id: string, onConnection: (socket: Socket) => void): Promise<void> => {
    const server = createServer(onConnection);
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    fixture.pool.add({ id, host: '127.0.0.1', port: (server.address() as AddressInfo).port });
  };

  test('a worker that refuses the connection is passed over: another gets the request, whole', async () => {
    fixture.pool.add({ id: 'dead', host: '127.0.0.1', port: await closedPort() });
    await fixture.worker('w1', async (request, response) => {
      let size = 0;
      for await (const chunk of request) size += (chunk as Buffer).length;
      response.end(String(size));
    });
    for (let count = 0; count < 6; count += 1) {
      const { status, text, headers } = await fixture.send('/', { method: 'POST' }, Buffer.alloc(50_000));
      assert.deepEqual([status, text, headers['x-runpod-worker-id']], [200, '50000', 'w1']);
    }
    assert.equal(fixture.gateway.demand('ep1'), 0);
  });

  test('where none can be reached, a request is tried again until one is there', async (context) => {
    await fixture.close();
    fixture = await createGatewayFixture({ limits: { unreachableMs: 1 } });
    const warnings: Error[] = [];
    const warned = (warning: Error): void => void warnings.push(warning);
    process.on('warning', warned);
    context.after(() => process.off('warning', warned));
    for (const id of ['dead', 'dead2']) fixture.pool.add({ id, host: '127.0.0.1', port: await closedPort() });
    const answer = fixture.send('/', { method: 'POST' }, 'body');
    await waitUntil(() => fixture.pool.touches.length > 30);
    await fixture.worker('w1', (request, response) => void request.pipe(response));
    const { status, text, headers } = await answer;
    assert.deepEqual([status, text, headers['x-runpod-worker-id']], [200, 'body', 'w1']);
    assert.deepEqual(warnings, []);
  });

  test('and is 503 when its time is over', async () => {
    await fixture.close();
    fixture = await createGatewayFixture({ limits: { waitMs: 30, unreachableMs: 1 } });
    fixture.pool.add({ id: 'dead', host: '127.0.0.1', port: await closedPort() });
    const { status, text, headers } = await fixture.send('/');
    assert.deepEqual([status, text, headers['retry-after']], [503, '{"error":"no workers available"}', '5']);
    assert.equal(fixture.gateway.demand('ep1'), 0);
  });

  test('a request that a worker has seen is never sent again', async () => {
    let seen = 0;
    const drop = (socket: Socket): void => {
      socket.on('error', () => socket.destroy());
      socket.on('data', () => {
        seen += 1;
        socket.destroy();
      });
    };
    await rawWorker('w1', drop);
    await rawWorker('w2', drop);
    for (const method of ['GET', 'POST']) {
      seen = 0;
      const { status, headers } = await fixture.send('/', { method });
      assert.equal(status, 502);
      assert.match(String(headers['x-runpod-worker-id']), /^w[12]$/);
      assert.equal(seen, 1);
    }
  });

  test('a worker that dies in the middle of its answer cuts it off, and the next request is served', async () => {
    const worker = await fixture.worker('w1', (_request, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('part', () => void stopWorker(worker));
    });
    const [answer] = (await once(fixture.open('/').end(), 'response')) as [IncomingMessage];
    answer.resume();
    const [error] = (await once(answer, 'error')) as [Error];
    assert.match(error.message, /aborted/);
    assert.equal(answer.complete, false);
    fixture.pool.remove('w1');
    await fixture.worker('w2', ok);
    assert.equal((await fixture.send('/')).text, 'ok');
  });

  test('the same with chunks: half an answer never looks complete', async () => {
    const worker = await fixture.worker('w1', (_request, response) => {
      response.write('part', () => void stopWorker(worker));
    });
    const [answer] = (await once(fixture.open('/').end(), 'response')) as [IncomingMessage];
    answer.resume();
    await once(answer, 'error');
    assert.equal(answer.complete, false);
  });

  test('a worker that does not answer in time is given up: 504, and its connection is closed', async () => {
    await withLittleTime();
    const worker = await fixture.worker('w1', () => undefined);
    const { status, text, headers } = await fixture.send('/');
    assert.equal(status, 504);
    assert.deepEqual(JSON.parse(text), { error: 'the worker did not answer within 0.15 s' });
    assert.equal(headers['x-runpod-worker-id'], 'w1');
    await waitUntil(() => worker.connections.size === 0);
    assert.equal(fixture.gateway.demand('ep1'), 0);
  });

  test('an answer that begins in time and does not end is cut off', async () => {
    await withLittleTime();
    await fixture.worker('w1', (_request, response) => void response.write('part'));
    const [answer] = (await once(fixture.open('/').end(), 'response')) as [IncomingMessage];
    answer.resume();
    await once(answer, 'error');
    assert.equal(answer.complete, false);
  });

  test('a body over the limit is 413, before it is read if it has a Content-Length', async () => {
    let asked = 0;
    await fixture.worker('w1', (request, response) => {
      asked += 1;
      request.resume();
      request.on('end', () => response.end('ok'));
    });
    const told = await fixture.send('/', { method: 'POST' }, Buffer.alloc(100_001));
    assert.equal(told.status, 413);
    assert.equal(asked, 0);
    const outgoing = fixture.open('/', { method: 'POST' });
    const answer = readResponse(outgoing);
    for (let count = 0; count < 3; count += 1) outgoing.write(Buffer.alloc(50_000));
    outgoing.end();
    const chunked = await answer;
    assert.equal(chunked.status, 413);
    assert.match(chunked.text, /100000 bytes/);
    assert.equal((await fixture.send('/', { method: 'POST' }, Buffer.alloc(100_000))).text, 'ok');
  });

  test('a body without end is not read without end', async () => {
    await fixture.worker('w1', (request) => void request.resume());
    const socket = await fixture.raw(
      `POST ${fixture.base}/ HTTP/1.1\r\nHost: x\r\nAuthorization: ${fixture.key}\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    const piece = `f4240\r\n${'x'.repeat(1_000_000)}\r\n`;
    let pieces = 0;
    const send = (): void => {
      while (!socket.destroyed && pieces < 1000 && socket.write(piece)) pieces += 1;
    };
    socket.on('drain', send);
    send();
    assert.match(await readAll(socket).catch(() => 'HTTP/1.1 413'), /^HTTP\/1\.1 413/);
    assert.ok(pieces < 200, `${pieces} MB were read`);
  });

  test('an answer over the limit is 502 with a Content-Length, and is cut off without one', async () => {
    await fixture.worker('w1', (request, response) => {
      if (request.url === '/told') response.setHeader('content-length', 100_001);
      else response.flushHeaders();
      response.end(Buffer.alloc(100_001));
    });
    const told = await fixture.send('/told');
    assert.equal(told.status, 502);
    assert.match(told.text, /larger than the 100000 bytes/);
    assert.equal((await fixture.send('/told', { method: 'HEAD' })).headers['content-length'], '100001');
    const [answer] = (await once(fixture.open('/untold').end(), 'response')) as [IncomingMessage];
    answer.resume();
    await once(answer, 'error');
    assert.equal(answer.complete, false);
  });

  test('an answer that is not HTTP is 502', async () => {
    const answers = [
      'SSH-2.0-OpenSSH_9.6\r\n\r\n',
      'HTTP/2 200 OK\r\n\r\n',
      'HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx',
      'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n',
      'HTTP/1.1 200 OK\r\n folded: x\r\n\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n',
      `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(200_000)}\r\n\r\n`,
    ];
    let next = 0;
    await rawWorker('w1', (socket) => {
      socket.on('error', () => socket.destroy());
      socket.once('data', () => socket.end(answers[next] ?? ''));
    });
    for (next = 0; next < answers.length; next += 1) {
      const { status, text } = await fixture.send('/');
      assert.equal(status, 502, answers[next]?.slice(0, 60));
      assert.equal(typeof (JSON.parse(text) as { error: unknown }).error, 'string');
    }
  });

  test('bytes after a response never reach the next request', async () => {
    await rawWorker('w1', (socket) => {
      socket.on('error', () => socket.destroy());
      socket.on('data', () =>
        socket.write(
          'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil',
        ),
      );
    });
    for (let count = 0; count < 5; count += 1) assert.equal((await fixture.send('/')).text, 'ok');
  });

  test('a second answer that a worker sends later never reaches the next request', async () => {
    for (const turns of [1, 2, 3, 5]) {
      await rawWorker(`w${turns}`, (socket) => {
        socket.on('error', () => socket.destroy());
        socket.on('data', async () => {
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
          for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil');
        });
      });
      for (let count = 0; count < 5; count += 1) {
        assert.equal((await fixture.send('/')).text, 'ok');
        // The next request comes after the second answer.
        for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      }
      fixture.pool.remove(`w${turns}`);
    }
  });

  test('an answer before the body was read is passed on, and the rest of the body is not', async () => {
    await fixture.worker('w1', (_request, response) => void response.writeHead(403).end('no'));
    const outgoing = fixture.open('/', { method: 'POST' });
    outgoing.on('error', () => outgoing.destroy());
    outgoing.write('some');
    const { status, text } = await readResponse(outgoing);
    assert.deepEqual([status, text], [403, 'no']);
    outgoing.end();
    await waitUntil(() => fixture.gateway.demand('ep1') === 0);
  });

  test('an answer that ends with the connection is whole', async () => {
    await rawWorker('w1', (socket) => {
      socket.on('error', () => socket.destroy());
      socket.once('data', () => {
        socket.write('HTTP/1.0 200 OK\r\nX-Old: yes\r\n\r\n');
        socket.end('until the end');
      });
    });
    const { status, text, headers } = await fixture.send('/');
    assert.deepEqual([status, text, headers['x-old']], [200, 'until the end', 'yes']);
  });
});
