import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createApiClient } from '../../packages/testing/src/api-client.ts';
import type { ApiClient } from '../../packages/testing/src/api-client.ts';
import { createPod, podAction, waitForPodStatus } from '../../packages/testing/src/pod-client.ts';
import { createQueueEndpoint } from '../../packages/testing/src/queue-endpoint-client.ts';
import { ROOT_KEY } from '../../packages/testing/src/server-process.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

/** How the servers run that make a fixture and open it. */
export const SERVER_ENV = {
  BERTH_DOCKER: 'off',
  // By name: earlier versions do not know the word.
  BERTH_GPUS: 'NVIDIA GeForce RTX 4090,NVIDIA A100 80GB PCIe,NVIDIA H100 80GB HBM3',
  BERTH_RATE_LIMITS: 'off',
  BERTH_ROOT_KEY: ROOT_KEY,
  BERTH_LOG_FORMAT: 'json',
  BERTH_WEBHOOKS_ALLOW_PRIVATE: 'true',
};

const WEEK_MS = 7 * 86_400_000;
const keep = { retention: WEEK_MS, policy: { ttl: WEEK_MS } };
/** Sent with the header `Idempotency-Key: once`. */
export const IDEMPOTENT_REQUEST = { input: { n: 7 }, ...keep };
/** The worker that runs a job when the server is killed. */
export const RUNNING_WORKER = 'worker-that-stays';

/** What was put into a server, by id. */
export interface Filled {
  accountKey: string;
  revokedKey: string;
  endpointId: string;
  releasedEndpointId: string;
  /** In the order in which they were submitted, which is that in which they must be taken. */
  queued: string[];
  running: string;
  ended: Record<'completed' | 'failed' | 'cancelled' | 'streamed' | 'sync' | 'delivered', string>;
  idempotent: string;
  templateId: string;
  volumeId: string;
  podId: string;
  removedPodId: string;
}

/** One of everything, in every state that a job can be in. */
export async function fillServer(root: ApiClient): Promise<Filled> {
  const make = async (client: ApiClient, path: string, body: object): Promise<Record<string, string>> => {
    const { status, body: made, text } = await client.call<Record<string, string>>('POST', path, body);
    assert.equal(status, 201, `${path}: ${text}`);
    return made;
  };
  const account = await make(root, '/v2/accounts', { name: 'crew' });
  const accountKey = account['key'] ?? '';
  const crew = createApiClient(root.url, accountKey);
  await make(crew, '/v2/account/api-keys', { name: 'reader', access: 'READ_ONLY' });
  const revoked = await make(crew, '/v2/account/api-keys', { name: 'revoked', access: 'ALL' });
  assert.equal((await crew.call('DELETE', `/v2/account/api-keys/${revoked['id']}`)).status, 204);

  await make(root, '/v2/account/secrets', { name: 'token', value: 'a secret value' });
  await make(root, '/v2/registries', { name: 'hub', username: 'ann', password: 'a password' });
  assert.equal(
    (await root.call('PUT', '/v2/account/ssh-keys', { keys: ['ssh-ed25519 AAAA ann@home'] })).status,
    200,
  );
  const template = await make(root, '/v2/templates', {
    name: 'shell',
    image: 'local/shell',
    env: { TOKEN: '{{ RUNPOD_SECRET_token }}', PLAIN: 'value' },
  });
  const volume = await make(root, '/v2/network-volumes', { name: 'files', size: 10, dataCenter: 'LOCAL-1' });

  const released = await createQueueEndpoint(root.url, ROOT_KEY, { name: 'released' });
  const changed = await root.call('PATCH', `/v2/serverless/${released.id}`, { env: { CHANGED: 'yes' } });
  assert.equal(changed.status, 200, changed.text);

  const pod = await createPod(root, {
    name: 'kept',
    mounts: { network: [{ volumeId: volume['id'], path: '/workspace' }] },
  });
  assert.equal(pod.status, 201, pod.text);
  const removed = await createPod(root, { name: 'removed' });
  for (const { body } of [pod, removed]) await waitForPodStatus(root, body.id, 'RUNNING');
  await podAction(root, pod.body.id, 'stop');
  await waitForPodStatus(root, pod.body.id, 'EXITED');
  assert.equal((await root.call('DELETE', `/v2/pods/${removed.body.id}`)).status, 204);

  return {
    accountKey,
    revokedKey: revoked['key'] ?? '',
    releasedEndpointId: released.id,
    templateId: template['id'] ?? '',
    volumeId: volume['id'] ?? '',
    podId: pod.body.id,
    removedPodId: removed.body.id,
    ...(await fillQueue(root)),
  };
}

type FilledQueue = Pick<Filled, 'endpointId' | 'queued' | 'running' | 'ended' | 'idempotent'>;

async function fillQueue(root: ApiClient): Promise<FilledQueue> {
  const jobs = await createQueueEndpoint(root.url, ROOT_KEY, { name: 'jobs' });
  const worker = jobs.worker(RUNNING_WORKER);
  const take = async (rest: object = {}): Promise<string> => {
    const id = await jobs.run({ n: 0 }, { ...keep, ...rest });
    assert.equal((await worker.take()).id, id);
    return id;
  };
  const completed = await take();
  await worker.done(completed, { output: { text: 'the output', list: [1, 2, 3] } });
  const failed = await take();
  await worker.done(failed, { error: 'it failed' });
  const streamed = await take();
  for (const n of [1, 2, 3]) await worker.chunk(streamed, { output: { chunk: n } });
  await worker.done(streamed, { output: [] }, true);
  const sync = jobs.runSync({ n: 0 }, 60_000, keep);
  const { id: syncId } = await worker.take();
  await worker.done(syncId, { output: 'in time' });
  assert.equal((await sync).body.status, 'COMPLETED');
  const delivered = await deliverWebhook(async (webhook) => {
    const id = await take({ webhook });
    await worker.done(id, { output: 'told' });
    await waitFor('the webhook is delivered', async () => {
      const { body } = await jobs.call<{ deliveries: { state: string }[] }>('GET', `webhooks?jobId=${id}`);
      return body.deliveries[0]?.state === 'delivered';
    });
    return id;
  });
  const running = await take();
  await worker.chunk(running, { output: { chunk: 'first' } });
  await worker.progress(running, { percent: 40 });
  const cancelled = await jobs.run({ n: 0 }, keep);
  assert.equal((await jobs.call('POST', `cancel/${cancelled}`)).status, 200);
  const queued = [
    await jobs.run({ n: 1 }, keep),
    await jobs.run({ n: 2, text: 'x'.repeat(3_000) }, { ...keep, webhook: 'http://127.0.0.1:9/' }),
  ];
  // Submitted together: what comes together may share rows.
  for (const id of await Promise.all([3, 4, 5, 6].map((n) => jobs.run({ n }, keep)))) queued.push(id);
  const once = await jobs.call('POST', 'run', IDEMPOTENT_REQUEST, { 'idempotency-key': 'once' });
  assert.equal(once.status, 200, once.text);
  queued.push(once.body.id);
  worker.close();
  const ended = { completed, failed, cancelled, streamed, sync: syncId, delivered };
  return { endpointId: jobs.id, queued, running, ended, idempotent: once.body.id };
}

/** Runs the work with the URL of a receiver that accepts every webhook. */
async function deliverWebhook(work: (url: string) => Promise<string>): Promise<string> {
  const receiver = createServer((_request, response) => void response.writeHead(204).end());
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  try {
    return await work(`http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`);
  } finally {
    receiver.close();
    receiver.closeAllConnections();
  }
}

/**
 * All that the API says of it, by path, but for streams: who reads a chunk consumes it. The server's own URL
 * is left out.
 */
export async function readEverything(root: ApiClient, filled: Filled): Promise<Record<string, unknown>> {
  const { endpointId } = filled;
  const jobs = [...Object.values(filled.ended), ...filled.queued, filled.running];
  const paths = [
    '/v2/accounts',
    '/v2/account/api-keys',
    '/v2/account/secrets',
    '/v2/account/ssh-keys',
    '/v2/account/webhook-secret',
    '/v2/account/audit-log?limit=1000',
    '/v2/registries',
    '/v2/templates',
    `/v2/templates/${filled.templateId}`,
    '/v2/network-volumes',
    `/v2/network-volumes/${filled.volumeId}`,
    '/v2/serverless',
    `/v2/serverless/${endpointId}`,
    `/v2/serverless/${filled.releasedEndpointId}/releases`,
    `/v2/pods/${filled.podId}`,
    '/v1/pods',
    '/v1/templates',
    '/v1/endpoints',
    `/v2/billing/pods?podId=${filled.podId}&lastN=2&bucketSize=month`,
    `/v2/billing/pods?podId=${filled.removedPodId}&lastN=2&bucketSize=month`,
    ...jobs.map((id) => `/v2/${endpointId}/status/${id}`),
    `/v2/${endpointId}/webhooks`,
  ];
  const answers: Record<string, unknown> = {};
  for (const path of paths) {
    const { status, text } = await root.call('GET', path);
    answers[path] = { status, body: text === '' ? null : JSON.parse(text.replaceAll(root.url, '{url}')) };
  }
  return answers;
}
