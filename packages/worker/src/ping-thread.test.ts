import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { WorkerLog } from './worker-log.ts';
import { nextEventLoopTurn } from './delay.ts';
import { PingThread } from './ping-thread.ts';

/** A server that does not need this thread's event loop. It records its requests. */
const LISTENER = `
  const { parentPort } = require('node:worker_threads');
  const server = require('node:http').createServer((request, response) => {
    parentPort.postMessage(request.url + ' ' + request.headers.authorization);
    response.end();
  });
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`;

/**
 * Blocks this thread until the other one has sent all of these, and returns the requests since the last call.
 */
async function busyUntilAsked(asked: string[], ...urls: string[]): Promise<Set<string>> {
  while (!urls.every((url) => asked.includes(url))) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
    await nextEventLoopTurn();
    await nextEventLoopTurn();
  }
  return new Set(asked.splice(0));
}

test('the ping thread pings for the workers of a blocked process', { timeout: 20_000 }, async () => {
  const listener = new Worker(LISTENER, { eval: true });
  const [port] = (await once(listener, 'message')) as [number];
  const asked: string[] = [];
  listener.on('message', (request: string) => asked.push(request));
  const log = new WorkerLog({}, () => undefined);
  const jobs = { a: '1', b: '1' };
  const [a, b] = (['a', 'b'] as const).map(
    (name) =>
      new PingThread({
        apiKey: `key-${name}`,
        pingMs: 100,
        log,
        pingUrl: () => `http://127.0.0.1:${port}/${name}?job_id=${jobs[name]}`,
      }),
  ) as [PingThread, PingThread];
  a.jobsChanged();
  b.jobsChanged();
  assert.deepEqual(
    await busyUntilAsked(asked, '/a?job_id=1 key-a', '/b?job_id=1 key-b'),
    new Set(['/a?job_id=1 key-a', '/b?job_id=1 key-b']),
  );

  jobs.a = '2';
  a.jobsChanged();
  await b.stop();
  await busyUntilAsked(asked, '/a?job_id=2 key-a');
  assert.deepEqual(await busyUntilAsked(asked, '/a?job_id=2 key-a'), new Set(['/a?job_id=2 key-a']));

  // The second change comes too soon after the first to be sent, and then this thread is blocked.
  jobs.a = '3';
  a.jobsChanged();
  jobs.a = '4';
  a.jobsChanged();
  await busyUntilAsked(asked, '/a?job_id=3&job_ids=partial key-a');
  await busyUntilAsked(asked, '/a?job_id=4 key-a');
  await a.stop();
  await listener.terminate();
});
