import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as ask } from 'node:http';
import type { ClientRequest, IncomingMessage, RequestListener, RequestOptions, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { createLog } from '../../support/log.ts';
import { WildcardDomain } from './wildcard-domain.ts';
import { PodGateway } from './pod-gateway.ts';
import type { PodPortUrl } from './pod-port-url.ts';
import { readResponse, startWorker, stopWorker, waitUntil } from './gateway.fixture.ts';
import type { TestWorker } from './gateway.fixture.ts';
import { requestsUpgrade } from './upgrade-detector.ts';

const ANSWER_WITHIN_MS = 100_000;

describe('a pod that takes its time', () => {
  let now: number;
  let gateway: PodGateway;
  let server: Server;
  let pod: TestWorker;
  /** Requests that have reached the pod. */
  let arrived: IncomingMessage[];
  let listener: RequestListener;

  beforeEach(async () => {
    now = 0;
    mock.timers.enable({ apis: ['setTimeout'] });
    mock.method(performance, 'now', () => now);
    arrived = [];
    listener = () => undefined;
    pod = await startWorker('p', (request, response) => {
      arrived.push(request);
      listener(request, response);
    });
    gateway = new PodGateway({
      portResolver: {
        resolve: async () => ({
          state: 'open',
          address: { host: pod.host, port: pod.port },
          accountId: 'owner',
        }),
      },
      domain: new WildcardDomain(''),
      log: createLog({ level: 'silent', format: 'json' }),
    });
    server = createServer({ shouldUpgradeCallback: requestsUpgrade });
    const address = (request: IncomingMessage): PodPortUrl => gateway.match(request) as PodPortUrl;
    server.on('request', (request, response) => void gateway.serve(request, response, address(request)));
    server.on(
      'upgrade',
      (request, socket, head) => void gateway.upgrade(request, socket, head, address(request)),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });

  afterEach(async () => {
    mock.timers.reset();
    mock.restoreAll();
    gateway.close();
    server.closeAllConnections();
    server.close();
    await stopWorker(pod);
  });

  function open(options: RequestOptions = {}): ClientRequest {
    return ask({
      host: '127.0.0.1',
      port: (server.address() as AddressInfo).port,
      path: '/proxy/abc-8000/',
      agent: false,
      ...options,
    });
  }

  function pass(milliseconds: number): void {
    now += milliseconds;
    mock.timers.tick(milliseconds);
  }

  /** Whatever is on its way arrives: all ends are in this process. */
  async function turns(): Promise<void> {
    let count = 0;
    await waitUntil(() => (count += 1) > 100);
  }

  test('gets 524 after 100 seconds without an answer, and its connection is closed', async () => {
    const asked = open().end();
    let answered = false;
    asked.on('response', () => (answered = true));
    await waitUntil(() => arrived.length === 1);
    pass(ANSWER_WITHIN_MS - 1);
    await turns();
    assert.equal(answered, false);
    pass(1);
    const { status, text } = await readResponse(asked);
    assert.deepEqual([status, JSON.parse(text)], [524, { error: 'the pod did not answer within 100 s' }]);
    await waitUntil(() => pod.connections.size === 0);
  });

  test('may stream for hours once its answer has begun', async () => {
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    listener = (_request, response) => {
      response.write('begun ');
      void over.then(() => response.end('and ended'));
    };
    const asked = open().end();
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    pass(50 * ANSWER_WITHIN_MS);
    end();
    assert.equal((await Array.fromAsync(answer as AsyncIterable<Buffer>)).join(''), 'begun and ended');
  });

  for (const [policy, headers] of [
    ['with a length', { 'content-length': '2' }],
    ['in chunks', { 'transfer-encoding': 'chunked' }],
  ] as const) {
    test(`has its 100 seconds from the end of an upload on, ${policy}, however long that took`, async () => {
      const { promise: over, resolve: end } = Promise.withResolvers<void>();
      let received = '';
      listener = (request, response) => {
        request.on('data', (chunk: Buffer) => (received += chunk.toString()));
        void over.then(() => response.end('ok'));
      };
      const asked = open({ method: 'POST', headers });
      asked.write('a');
      await waitUntil(() => received === 'a');
      pass(1.5 * ANSWER_WITHIN_MS);
      pass(0.9 * ANSWER_WITHIN_MS);
      asked.end('b');
      await waitUntil(() => received === 'ab' && arrived[0]?.complete === true);
      pass(0.9 * ANSWER_WITHIN_MS);
      end();
      assert.equal((await readResponse(asked)).status, 200);
    });

    test(`is given up 100 seconds after an upload ended, ${policy}`, async () => {
      listener = (request) => void request.resume();
      const asked = open({ method: 'POST', headers });
      asked.write('a');
      await waitUntil(() => arrived.length === 1);
      pass(2.5 * ANSWER_WITHIN_MS);
      asked.end('b');
      await waitUntil(() => arrived[0]?.complete === true);
      pass(ANSWER_WITHIN_MS);
      assert.equal((await readResponse(asked)).status, 524);
    });
  }

  test('gets 524 too if it does not answer an upgrade', async () => {
    pod.server.on('upgrade', (request, socket) => {
      arrived.push(request);
      socket
        .on('error', () => undefined)
        .on('end', () => socket.end())
        .resume();
    });
    const asked = open({
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      },
    }).end();
    await waitUntil(() => arrived.length === 1);
    pass(ANSWER_WITHIN_MS);
    assert.equal((await readResponse(asked)).status, 524);
    await waitUntil(() => pod.connections.size === 0);
  });
});
