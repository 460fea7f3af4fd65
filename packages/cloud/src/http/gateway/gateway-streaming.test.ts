import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { readResponse, latch, createGatewayFixture, waitUntilStable, waitUntil } from './gateway.fixture.ts';
import type { GatewayFixture } from './gateway.fixture.ts';

const MEGABYTE = 1024 * 1024;
const CHUNKS = 10_000;

describe('streams through the gateway', () => {
  let fixture: GatewayFixture;
  let handle: (request: IncomingMessage, response: ServerResponse) => unknown;

  before(async () => {
    fixture = await createGatewayFixture();
    await fixture.worker('w1', (request, response) => void handle(request, response));
  });
  after(() => fixture.close());

  test('10,000 events arrive whole and in order', async () => {
    handle = async (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let number = 0; number < CHUNKS; number += 1)
        if (!response.write(`data: ${number}\n\n`)) await once(response, 'drain');
      response.end();
    };
    const { text, headers } = await fixture.send('/events');
    assert.equal(headers['content-type'], 'text/event-stream');
    assert.equal(text, Array.from({ length: CHUNKS }, (_, number) => `data: ${number}\n\n`).join(''));
  });

  test('each event arrives before the next is made, and the headers before the first', async () => {
    const steps = Array.from({ length: 5 }, latch);
    handle = async (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      for (const [number, step] of steps.entries()) {
        await step.opened;
        response.write(`data: ${number}\n\n`);
      }
      response.end();
    };
    const outgoing = fixture.open('/slow').end();
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
    const ended = once(answer, 'end');
    for (const [number, step] of steps.entries()) {
      step.open();
      const [chunk] = (await once(answer, 'data')) as [Buffer];
      assert.equal(chunk.toString(), `data: ${number}\n\n`);
    }
    await ended;
  });

  test('a worker may answer while the request is still being sent', async () => {
    handle = (request, response) => request.pipe(response);
    const outgoing = fixture.open('/echo', { method: 'POST' });
    outgoing.flushHeaders();
    outgoing.write('0');
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
    for (let number = 1; number < 50; number += 1) {
      const [chunk] = (await once(answer, 'data')) as [Buffer];
      assert.equal(chunk.toString(), String(number - 1));
      outgoing.write(String(number));
    }
    outgoing.end();
    answer.resume();
    await once(answer, 'end');
  });

  test('20 MB arrive unchanged both ways, with a length or in chunks', async () => {
    handle = (request, response) => {
      const length = request.headers['content-length'];
      if (length !== undefined) response.setHeader('content-length', length);
      request.pipe(response);
    };
    const body = randomBytes(20 * MEGABYTE);
    const sum = createHash('sha256').update(body).digest('hex');
    for (const chunked of [false, true]) {
      const outgoing = fixture.open('/echo', {
        method: 'POST',
        headers: chunked ? {} : { 'content-length': String(body.length) },
      });
      const response = once(outgoing, 'response') as Promise<[IncomingMessage]>;
      const sent = (async () => {
        for (let at = 0; at < body.length; at += 100_003)
          if (!outgoing.write(body.subarray(at, at + 100_003))) await once(outgoing, 'drain');
        outgoing.end();
      })();
      const [answer] = await response;
      const received = createHash('sha256');
      for await (const chunk of answer) received.update(chunk as Buffer);
      await sent;
      assert.equal(received.digest('hex'), sum);
    }
  });

  test('a client that reads slowly slows the worker down', async () => {
    let written = 0;
    handle = async (_request, response) => {
      const piece = Buffer.alloc(64 * 1024);
      for (written = 0; written < 25 * MEGABYTE; written += piece.length)
        if (!response.write(piece)) await once(response, 'drain');
      response.end();
    };
    const [answer] = (await once(fixture.open('/much').end(), 'response')) as [IncomingMessage];
    answer.pause();
    // Every buffer on the way fills; then the worker stands still.
    await waitUntilStable(() => written);
    assert.ok(written < 20 * MEGABYTE, `the worker could write ${written} bytes that nobody has read`);
    let size = 0;
    for await (const chunk of answer) size += (chunk as Buffer).length;
    assert.equal(size, 25 * MEGABYTE);
  });

  test('a worker that reads slowly slows the client down', async () => {
    const reading = latch();
    handle = async (request, response) => {
      request.pause();
      await reading.opened;
      let size = 0;
      for await (const chunk of request) size += (chunk as Buffer).length;
      response.end(String(size));
    };
    const outgoing = fixture.open('/up', { method: 'POST' });
    const answer = readResponse(outgoing);
    const piece = Buffer.alloc(64 * 1024);
    let written = 0;
    let stopped = false;
    const write = (): void => {
      for (let flows = true; flows && !stopped && written < 25 * MEGABYTE; written += piece.length)
        flows = outgoing.write(piece);
    };
    outgoing.on('drain', write);
    write();
    await waitUntilStable(() => written);
    stopped = true;
    assert.ok(written < 20 * MEGABYTE, `the client could write ${written} bytes that nobody has read`);
    reading.open();
    outgoing.end();
    assert.equal((await answer).text, String(written));
  });

  test('Expect: 100-continue is answered when a worker is ready', async () => {
    let received = '';
    handle = async (request, response) => {
      for await (const chunk of request) received += String(chunk);
      response.end(JSON.stringify([received, request.headers.expect ?? null]));
    };
    const outgoing = fixture.open('/up', {
      method: 'POST',
      headers: { expect: '100-continue', 'content-length': '5' },
    });
    outgoing.flushHeaders();
    const answer = readResponse(outgoing);
    await once(outgoing, 'continue');
    assert.equal(received, '');
    outgoing.end('hello');
    assert.equal((await answer).text, '["hello",null]');
  });

  test('Expect: 100-continue with too large a body or an invalid key is refused before the body', async () => {
    for (const [headers, status] of [
      [{ 'content-length': String(31 * MEGABYTE) }, 413],
      [{ 'content-length': '5', authorization: 'wrong' }, 401],
    ] as const) {
      const outgoing = fixture.open('/up', {
        method: 'POST',
        headers: { ...headers, expect: '100-continue' },
      });
      let continued = false;
      outgoing.on('continue', () => (continued = true));
      outgoing.flushHeaders();
      outgoing.on('error', () => outgoing.destroy());
      assert.equal((await readResponse(outgoing)).status, status);
      assert.equal(continued, false);
    }
  });

  test('a client that disconnects aborts the request at the worker', async () => {
    const begun = latch();
    const gone = latch();
    handle = (_request, response) => {
      response.write('first');
      response.on('close', () => gone.open());
      begun.open();
    };
    const outgoing = fixture.open('/long').end();
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
    await begun.opened;
    await once(answer, 'data');
    answer.on('error', () => answer.destroy());
    outgoing.destroy();
    await gone.opened;
    await waitUntil(() => fixture.gateway.demand('ep1') === 0);
  });

  test('a client that disconnects while it sends aborts the request too', async () => {
    const gone = latch();
    const first = latch();
    handle = (request) => {
      request.on('data', () => first.open());
      request.on('error', () => gone.open());
      request.on('close', () => gone.open());
    };
    const outgoing = fixture.open('/up', { method: 'POST' });
    outgoing.on('error', () => outgoing.destroy());
    outgoing.write('part');
    await first.opened;
    (outgoing.socket as Socket).resetAndDestroy();
    await gone.opened;
    await waitUntil(() => fixture.gateway.demand('ep1') === 0);
  });
});
