import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { test } from 'node:test';
import { listeningOrigin, publicOrigin } from './server-origin.ts';
import { EndpointUrls } from './endpoint-urls.ts';

test('a queue endpoint has an address for each thing that can be done with a job', () => {
  const urls = new EndpointUrls(() => 'http://here:1').of({ id: 'e', type: 'QUEUE', env: {} });
  assert.deepEqual(urls, {
    run: 'http://here:1/v2/e/run',
    runSync: 'http://here:1/v2/e/runsync',
    status: 'http://here:1/v2/e/status/{job_id}',
    stream: 'http://here:1/v2/e/stream/{job_id}',
    cancel: 'http://here:1/v2/e/cancel/{job_id}',
    retry: 'http://here:1/v2/e/retry/{job_id}',
    purgeQueue: 'http://here:1/v2/e/purge-queue',
    health: 'http://here:1/v2/e/health',
  });
});

test('a load balancing endpoint has a base, and the health check that its workers name', () => {
  const urls = new EndpointUrls(() => 'http://here:1');
  assert.deepEqual(urls.of({ id: 'e', type: 'LOAD_BALANCER', env: {} }), {
    base: 'http://here:1/v2/e',
    health: 'http://here:1/v2/e/ping',
  });
  assert.deepEqual(urls.of({ id: 'e', type: 'LOAD_BALANCER', env: { HEALTH_CHECK_PATH: 'up' } }), {
    base: 'http://here:1/v2/e',
    health: 'http://here:1/v2/e/up',
  });
});

test('the origin is the public URL, or else the address of the server', async () => {
  const server = createServer();
  assert.equal(publicOrigin('https://cloud.example/', server), 'https://cloud.example');
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const place = server.address();
  assert.ok(place !== null && typeof place === 'object');
  assert.equal(publicOrigin('', server), `http://127.0.0.1:${place.port}`);
  server.close();
  await once(server, 'close');
  assert.equal(
    listeningOrigin({ address: () => ({ address: '::', family: 'IPv6', port: 7 }) }),
    'http://127.0.0.1:7',
  );
  assert.equal(
    listeningOrigin({ address: () => ({ address: '::1', family: 'IPv6', port: 7 }) }),
    'http://[::1]:7',
  );
});
