import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createQueueEndpoint } from '../../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../../packages/testing/src/queue-endpoint-client.ts';
import type { ServerProcess } from '../../packages/testing/src/server-process.ts';
import { openTerminal } from '../../packages/testing/src/terminal-client.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

const LARGE_BYTES = 6_000_000;

/** What must pass through a proxy in front of Berth. `origin` is the https address of the proxy. */
export function proxySuite(fixture: {
  server(): ServerProcess;
  origin(): string;
  httpOrigin(): string;
}): void {
  const open = (): Promise<QueueEndpointClient> =>
    createQueueEndpoint(fixture.origin(), fixture.server().key);
  const take = 'job-take/w1?gpu=none&job_in_progress=0';

  test('HTTP is redirected to HTTPS', async () => {
    const { status, headers } = await fetch(`${fixture.httpOrigin()}/v2/x?y=1`, { redirect: 'manual' });
    assert.equal(status, 308);
    assert.match(headers.get('location') ?? '', /^https:\/\/.*\/v2\/x\?y=1$/);
  });

  test('a worker that polls, a caller that waits and a large body', async () => {
    const endpoint = await open();
    const polling = endpoint.call<{ id: string; input: { word: string } }>('GET', take);
    const waiting = endpoint.runSync({ word: 'x'.repeat(LARGE_BYTES) }, 60_000);
    const { status, body: job } = await polling;
    assert.deepEqual([status, job.input.word.length], [200, LARGE_BYTES]);
    const output = 'y'.repeat(LARGE_BYTES);
    assert.equal(
      (await endpoint.call('POST', `job-done/w1/${job.id}?gpu=none&isStream=false`, { output })).status,
      200,
    );
    const { body } = await waiting;
    assert.deepEqual([body.status, body.output === output], ['COMPLETED', true]);
  });

  test('chunks of a stream arrive while the job runs', async () => {
    const endpoint = await open();
    const id = await endpoint.run({});
    await endpoint.call('GET', take);
    const response = await fetch(`${fixture.origin()}/v2/${endpoint.id}/stream/${id}`, {
      headers: { authorization: `Bearer ${fixture.server().key}`, accept: 'text/event-stream' },
    });
    const events = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    await endpoint.call('POST', `job-stream/w1/${id}?gpu=none&isStream=true`, { output: 'first' });
    let received = '';
    while (!received.includes('first')) {
      const { value, done } = (await events?.read()) ?? { done: true };
      assert.equal(done, false, received);
      received += value;
    }
    await endpoint.call('POST', `job-done/w1/${id}?gpu=none&isStream=true`, { output: [] });
    await events?.cancel();
  });

  test('a terminal over a WebSocket', async () => {
    const client = fixture.server().client();
    const pod = await client.call<{ id: string }>('POST', '/v2/pods', {
      name: 'shell',
      image: 'local/shell',
      cpu: { id: 'cpu3c', vcpuCount: 2 },
      args: 'sleep 600',
    });
    assert.equal(pod.status, 201, pod.text);
    const url = `${fixture.origin().replace('https', 'wss')}/v2/pods/${pod.body.id}/terminal?cmd=cat`;
    const terminal = await waitFor('the pod has a terminal', () =>
      openTerminal(url, { authorization: `Bearer ${fixture.server().key}` }).catch(() => undefined),
    );
    await terminal.typeUntilOutput('through the proxy\n', 'through the proxy');
    terminal.terminate();
    await client.call('DELETE', `/v2/pods/${pod.body.id}`);
  });
}
