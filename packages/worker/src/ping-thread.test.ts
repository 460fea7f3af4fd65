import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { WorkerLog } from './worker-log.ts';
import { nextEventLoopTurn } from './delay.ts';
import { PingThread } from './ping-thread.ts';

/** A server that needs no turn of this thread. It tells what it was asked. */
const LISTENER = `
  const { parentPort } = require('node:worker_threads');
  const server = require('node:http').createServer((request, response) => {
    parentPort.postMessage(request.url + ' ' + request.headers.authorization);
    response.end();
  });
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`;

/** Keeps this thread busy until the other one has asked for all of these, and tells what was asked since the last time. */
async function busyUntilAsked(asked: string[], ...urls: string[]): Promise<Set<string>> {
  while (!urls.every((url) => asked.includes(url))) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
    await nextEventLoopTurn();
    await nextEventLoopTurn();
  }
  return new Set(asked.splice(0));
}

test('the workers of a process are pinged for while it is busy', { timeout: 20_000 }, async () => {
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

  // The second change comes too soon after the first to be told, and then this thread is busy.
  jobs.a = '3';
  a.jobsChanged();
  jobs.a = '4';
  a.jobsChanged();
  await busyUntilAsked(asked, '/a?job_id=3&job_ids=partial key-a');
  await busyUntilAsked(asked, '/a?job_id=4 key-a');
  await a.stop();
  await listener.terminate();
});
