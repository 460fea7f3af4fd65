import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { test } from 'node:test';
import { probeWorker } from './health-check.ts';
import { closedPort, startWorker, stopWorker, waitUntil } from './gateway.fixture.ts';

test('only the status code decides the health of a worker', async () => {
  const paths: string[] = [];
  const worker = await startWorker('w', (request, response) => {
    paths.push(request.url ?? '');
    response.writeHead(Number(request.url?.slice(-3))).end('body');
  });
  const cases: [number, string][] = [
    [200, 'ready'],
    [204, 'starting'],
    [201, 'unhealthy'],
    [301, 'unhealthy'],
    [404, 'unhealthy'],
    [503, 'unhealthy'],
  ];
  for (const [status, health] of cases)
    assert.equal(await probeWorker('127.0.0.1', worker.port, `/ping/${status}`, 5_000), health);
  const written: [string, string][] = [
    ['a path/200', '/a%20path/200'],
    ['/health?q=a%20b&c=%2F/200', '/health?q=a%20b&c=%2F/200'],
    ['/100%?é#[x]\ud800😀=200', '/100%25?%C3%A9%23%5Bx%5D%EF%BF%BD%F0%9F%98%80=200'],
  ];
  for (const [path, sent] of written) {
    assert.equal(await probeWorker('127.0.0.1', worker.port, path, 5_000), 'ready');
    assert.deepEqual(paths.slice(-1), [sent]);
  }
  await waitUntil(() => worker.connections.size === 0);
  await stopWorker(worker);
});

test('no answer is an answer too', async () => {
  assert.equal(await probeWorker('127.0.0.1', await closedPort(), '/ping', 5_000), 'unhealthy');
  const silent = createServer();
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  assert.equal(
    await probeWorker('127.0.0.1', (silent.address() as AddressInfo).port, '/ping', 30),
    'unhealthy',
  );
  silent.close();
});
