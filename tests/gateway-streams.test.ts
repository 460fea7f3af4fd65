import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import {
  responseOf,
  readResponse,
  loadBalancerFixture,
  nextChunk,
} from '../packages/testing/src/load-balancer-fixture.ts';
import type { LoadBalancerEndpoint } from '../packages/testing/src/load-balancer-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const MEGABYTE = 1024 * 1024;

describe('streams through a load balancing endpoint', () => {
  const fixture = loadBalancerFixture();

  test('both ways at the same time: each piece comes back before the next is sent', async () => {
    const endpoint = await fixture.endpoint();
    const asking = endpoint.openRequest('/back', { method: 'POST' });
    asking.write('piece 0');
    const response = await responseOf(asking);
    for (let number = 0; number < 20; number += 1) {
      assert.equal(await nextChunk(response), `piece ${number}`);
      if (number < 19) asking.write(`piece ${number + 1}`);
    }
    asking.end();
    await once(response.resume(), 'end');
    assert.ok(response.complete);
  });

  test('server-sent events arrive one by one, as the worker makes them', async () => {
    const endpoint = await fixture.endpoint();
    const response = await responseOf(endpoint.openRequest('/open/events').end());
    assert.equal(response.headers['content-type'], 'text/event-stream');
    for (const event of ['id: 1\ndata: one\n\n', 'id: 2\ndata: two\n\n']) {
      await endpoint.writeToOpenResponse('events', event);
      assert.equal(await nextChunk(response), event);
    }
    await endpoint.writeToOpenResponse('events');
    await once(response.resume(), 'end');
  });

  test('a WebSocket talks both ways, and is refused without a key', async () => {
    const endpoint = await fixture.endpoint();
    const { worker } = await endpoint.workerState();
    const address = `${fixture.server.url.replace(/^http/, 'ws')}/v2/${endpoint.id}/chat?room=1`;
    const socket = new WebSocket(address, { headers: { authorization: `Bearer ${fixture.server.key}` } });
    await once(socket, 'open');
    for (const message of ['hello', 'x'.repeat(10_000)]) {
      socket.send(message);
      const [event] = (await once(socket, 'message')) as [{ data: string }];
      assert.equal(event.data, `${worker} /chat?room=1: ${message}`);
    }
    socket.close();
    await once(socket, 'close');
    const refused = new WebSocket(address);
    await once(refused, 'error');
  });

  test('200 MB for a worker that does not read stay with their senders, and arrive whole when it does', async () => {
    const endpoint = await fixture.endpoint();
    const [uploads, each] = [8, 25 * MEGABYTE];
    const before = residentMegabytes(fixture.server.process.pid);
    const uploading = Array.from({ length: uploads }, (_, number) =>
      upload(endpoint, `/keep/${number}`, each),
    );
    const sizes = uploading.map(readResponse);
    await waitFor(
      'all uploads have reached the worker',
      async () => (await endpoint.workerState()).unread.length === uploads,
    );
    let [sent, looks] = [0, 0];
    await waitFor('nothing more is taken from the senders', async () => {
      const now = uploading.reduce((sum, { socket }) => sum + (socket?.bytesWritten ?? 0), 0);
      looks = now === sent ? looks + 1 : 0;
      sent = now;
      return looks === 10;
    });
    assert.ok(sent < (uploads * each) / 2, `${sent} bytes have left their senders`);
    const during = residentMegabytes(fixture.server.process.pid);
    assert.equal((await endpoint.call('POST', '/read', '')).text, String(uploads));
    for (const { status, text } of await Promise.all(sizes))
      assert.deepEqual([status, text], [200, String(each)]);
    const answers = await Promise.all(
      Array.from({ length: uploads }, async () => {
        const response = await responseOf(endpoint.openRequest(`/bytes/${each}`).end());
        let size = 0;
        for await (const chunk of response) size += (chunk as Buffer).length;
        return size;
      }),
    );
    assert.deepEqual(answers, Array(uploads).fill(each));
    const after = residentMegabytes(fixture.server.process.pid);
    // What has passed through is collected with everything else, when that has doubled.
    for (const [now, most] of [
      [during, 100],
      [after, 250],
    ] as const)
      assert.ok(
        now - before < most,
        `the server grew from ${before.toFixed(0)} MB to ${during.toFixed(0)} and ${after.toFixed(0)} MB`,
      );
  });

  test('a client that disconnects aborts the request at the worker', async () => {
    const endpoint = await fixture.endpoint();
    const asking = endpoint.openRequest('/open/left').end();
    await responseOf(asking);
    assert.deepEqual((await endpoint.workerState()).open, ['left']);
    asking.destroy();
    await waitFor('the worker hears of it', async () =>
      (await endpoint.workerState()).abandoned.includes('left'),
    );
  });

  test('a worker that dies in the middle of its answer cuts it off, and another takes its place', async () => {
    const endpoint = await fixture.endpoint();
    const { worker } = await endpoint.workerState();
    await assert.rejects(readResponse(endpoint.openRequest('/die').end()), /aborted/);
    const next = await waitFor('another worker answers', async () => {
      const { status, body } = await endpoint.call<{ worker: string }>('GET', '/about');
      return status === 200 ? body.worker : undefined;
    });
    assert.notEqual(next, worker);
  });
});

/** Sends so many bytes, no faster than they are taken. */
function upload(
  endpoint: LoadBalancerEndpoint,
  path: string,
  size: number,
): ReturnType<LoadBalancerEndpoint['openRequest']> {
  const asking = endpoint.openRequest(path, { method: 'POST', headers: { 'content-length': String(size) } });
  const piece = Buffer.alloc(64 * 1024);
  let left = size;
  const send = (): void => {
    while (left > 0) {
      const flows = asking.write(left < piece.length ? piece.subarray(0, left) : piece);
      left -= piece.length;
      if (!flows) return;
    }
    asking.off('drain', send).end();
  };
  asking.on('drain', send);
  send();
  return asking;
}

function residentMegabytes(pid: number | undefined): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}
