import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import { loadBalancerFixture } from '../packages/testing/src/load-balancer-fixture.ts';
import type { LoadBalancerEndpoint } from '../packages/testing/src/load-balancer-fixture.ts';
import { createRunningPod } from '../packages/testing/src/pod-client.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { createVolume } from '../packages/testing/src/s3-test-client.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';

/** More than the buffers between client and server hold, so that an unread answer stays open. */
const LARGE_BYTES = 32 * 1024 * 1024;
/** Far above the second that it may take, and below any wait that would end by itself. */
const LIMIT_MS = 15_000;

const UNREAD = ['large status', 'S3 download'];

interface Key {
  id: string;
  key: string;
}

/**
 * Tells how an open answer came to its end: its status where it was answered whole, else that it broke off.
 */
type End = () => Promise<string>;

describe('what is open when its key is revoked or expires', () => {
  const fixture = loadBalancerFixture();
  let jobs: QueueEndpointClient;
  let balanced: LoadBalancerEndpoint;
  let podId: string;
  let volumeId: string;
  let largeJob: string;

  before(async () => {
    const { client, server } = fixture;
    [jobs, balanced, { id: podId }, volumeId] = await Promise.all([
      createQueueEndpoint(server.url, server.key),
      fixture.endpoint(),
      createRunningPod(client, { cmd: ['sleep', '1000'] }),
      createVolume(client),
    ]);
    await waitUntilPasses(async () => assert.equal((await balanced.call('GET', '/about')).status, 200));
    await client.call('PUT', `/s3/${volumeId}/large`, Buffer.alloc(LARGE_BYTES));
    largeJob = await jobs.run();
    const worker = jobs.worker();
    const taken = await worker.take();
    assert.equal(taken?.id, largeJob);
    await worker.done(largeJob, { output: 'x'.repeat(LARGE_BYTES) });
  });

  const createKey = async (fields: object = {}): Promise<Key> => {
    const made = await fixture.client.call<Key>('POST', '/v2/account/api-keys', {
      name: 'short',
      access: 'ALL',
      ...fields,
    });
    assert.equal(made.status, 201, made.text);
    return made.body;
  };

  /** Opens one of each kind, and waits until each has begun. */
  async function openAll(key: string): Promise<Record<string, End>> {
    const ask = (method: string, path: string, headers: Record<string, string> = {}): ClientRequest =>
      request(fixture.server.url + path, {
        method,
        agent: false,
        headers: { authorization: `Bearer ${key}`, ...headers },
      });
    const job = await jobs.run();
    const job2 = await jobs.run();
    const sse = { accept: 'text/event-stream' };
    const half = { 'content-length': String(LARGE_BYTES), 'content-type': 'application/json' };
    const id = `/v2/${jobs.id}`;
    return {
      'job events': await begun(ask('GET', `${id}/stream/${job}`, sse)),
      'stream poll': held(ask('GET', `${id}/stream/${job2}?wait=60000`)),
      'status-sync': held(ask('GET', `${id}/status-sync/${job}?wait=300000`)),
      runsync: held(ask('POST', `${id}/runsync?wait=300000`), '{"input":{}}'),
      'job upload': uploading(ask('POST', `${id}/run`, { ...half, 'content-length': '1000000' })),
      'large status': await unread(ask('GET', `${id}/status/${largeJob}`)),
      'pod log events': await begun(ask('GET', `/v2/pods/${podId}/logs?follow=true`, sse)),
      'gateway answer': await begun(ask('GET', `/v2/${balanced.id}/open/${job}`)),
      'gateway upload': uploading(
        ask('POST', `/v2/${balanced.id}/keep/${job}`, { ...half, 'content-length': '1000000' }),
      ),
      'gateway socket': await socket(`/v2/${balanced.id}/socket`, key),
      'S3 upload': uploading(ask('PUT', `/s3/${volumeId}/new-${job}`, half)),
      'S3 download': await unread(ask('GET', `/s3/${volumeId}/large`)),
      'OpenAI call': held(ask('POST', `${id}/openai/v1/chat/completions`), '{"model":"m","messages":[]}'),
      'worker poll': held(ask('GET', `/v2/${jobs.id}/job-stop/some-worker`)),
    };
  }

  async function socket(path: string, key: string): Promise<End> {
    const { hostname, port } = new URL(fixture.server.url);
    const client = connect(Number(port), hostname);
    client.write(
      `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nConnection: Upgrade\r\n` +
        `Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
        `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    );
    const [head] = (await once(client, 'data')) as [Buffer];
    assert.match(head.toString(), /^HTTP\/1\.1 101 /);
    const closed = once(client.on('error', () => undefined).resume(), 'close');
    return () => closed.then(() => 'broke off');
  }

  const EXPECTED: Record<string, RegExp> = {
    'job events': /broke off/,
    'stream poll': /^401/,
    'status-sync': /^401/,
    runsync: /^401/,
    'job upload': /^401|broke off/,
    'large status': /broke off/,
    'pod log events': /broke off/,
    'gateway answer': /broke off/,
    'gateway upload': /^401|broke off/,
    'gateway socket': /broke off/,
    'S3 upload': /broke off/,
    'S3 download': /broke off/,
    'OpenAI call': /^401/,
    'worker poll': /^401/,
  };

  async function assertEnds(opened: Record<string, End>): Promise<void> {
    const late = pause(LIMIT_MS, 'still open', { ref: false });
    const endsOf = (names: string[]): Promise<[string, string | undefined][]> =>
      Promise.all(names.map(async (name) => [name, await Promise.race([opened[name]?.(), late])]));
    const names = Object.keys(opened);
    // Read to their end when the others have ended: were they still open, they would be whole.
    const ends = [
      ...(await endsOf(names.filter((name) => !UNREAD.includes(name)))),
      ...(await endsOf(UNREAD)),
    ];
    assert.deepEqual(
      ends.filter(([name, how]) => !(EXPECTED[name] as RegExp).test(how ?? '')),
      [],
    );
  }

  test('ends when the key is revoked', async () => {
    const { id, key } = await createKey();
    const opened = await openAll(key);
    assert.equal((await fixture.client.call('DELETE', `/v2/account/api-keys/${id}`)).status, 204);
    await assertEnds(opened);
  });

  test('ends when the key expires', async () => {
    const { key } = await createKey({ expiresAt: new Date(Date.now() + 5_000).toISOString() });
    await assertEnds(await openAll(key));
  });

  test('another key goes on', async () => {
    const [kept, revoked] = await Promise.all([createKey(), createKey()]);
    const { url } = fixture.server;
    const job = await jobs.run();
    const waiting = createApiClient(url, kept.key).call('GET', `/v2/${jobs.id}/status-sync/${job}?wait=2000`);
    await fixture.client.call('DELETE', `/v2/account/api-keys/${revoked.id}`);
    assert.equal((await waiting).status, 200);
  });
});

/** An answer that has begun and does not end by itself. */
async function begun(asking: ClientRequest): Promise<End> {
  const [response] = (await once(asking.end(), 'response')) as [IncomingMessage];
  assert.equal(response.statusCode, 200);
  return endOf(response);
}

/** An answer of which nothing is read but its head, until its end is asked for. */
async function unread(asking: ClientRequest): Promise<End> {
  const [response] = (await once(asking.end(), 'response')) as [IncomingMessage];
  assert.equal(response.statusCode, 200);
  response.on('error', () => undefined).pause();
  return () => endOf(response)();
}

/** A request that waits for its answer. */
function held(asking: ClientRequest, body?: string): End {
  asking.end(body);
  return answerOf(asking);
}

/** A request whose body never ends. */
function uploading(asking: ClientRequest): End {
  asking.write('{"input":"xxxx');
  return answerOf(asking);
}

function answerOf(asking: ClientRequest): End {
  const answer = new Promise<string>((resolve) => {
    asking.on('response', (response) => resolve(endOf(response)()));
    asking.on('error', () => resolve('broke off'));
  });
  return () => answer;
}

function endOf(response: IncomingMessage): End {
  const end = new Promise<string>((resolve) => {
    response.on('error', () => undefined).resume();
    response.on('close', () => resolve(response.complete ? String(response.statusCode) : 'broke off'));
  });
  return () => end;
}
