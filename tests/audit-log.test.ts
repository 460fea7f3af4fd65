import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { OpenApiDocument } from '../packages/cloud/src/http/rest/openapi.ts';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { CPU_HARDWARE, queueEndpoint } from '../packages/testing/src/create-resource.ts';
import { queueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

/** Operations that change something, or look as if they did, and have no entry in the audit log. */
const NOT_AUDITED: Record<string, string> = {
  'POST /v2/pods/check': 'changes nothing: it answers what a creation would',
  'POST /v2/sessions/links': 'the sign-in with the link has an entry; until then nobody is signed in',
  'PUT /v2/network-volumes/{id}/files/content': 'files are data, as over S3: there may be millions',
  'POST /v2/network-volumes/{id}/folders': 'folders are data, as over S3',
};
/** The job API: jobs are data, millions a day, and each has its own record with times and outcome. */
const JOB_API = /^POST \/v2\/\{endpointId\}\//;

const POD = { name: 'walk', image: 'local/shell', args: 'sleep 1000', cpu: CPU_HARDWARE };
const A40 = 'NVIDIA A40';

describe('the audit log', () => {
  const fixture = serverFixture('sqlite', { BERTH_RATE_LIMITS: 'off', BERTH_GPUS: `4x ${A40}` });
  const done = new Map<string, string>();
  let client: ApiClient;
  before(() => {
    client = createApiClient(fixture.server.url, fixture.server.key);
  });

  /** Performs an operation of a document, such as `DELETE /v2/pods/{id}`; its answer. */
  const act = async (
    operation: string,
    params: Record<string, string> = {},
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Record<string, string> & { id: string }> => {
    const [method = '', path = ''] = operation.split(' ');
    const [, query] = (params['?'] ?? '').split('?', 2);
    const target = path.replace(/\{(\w+)\}/g, (_, name: string) => params[name] ?? `no-${name}`);
    const answer = await client.call<never>(
      method,
      query === undefined ? target : `${target}?${query}`,
      body,
      headers,
    );
    assert.ok(answer.status >= 200 && answer.status < 300, `${operation}: ${answer.status} ${answer.text}`);
    done.set(operation, answer.headers.get('x-request-id') ?? '');
    return answer.body;
  };

  const running = (pod: string): Promise<true> =>
    waitFor('the pod runs', async () => {
      const { body } = await client.call<{ status: string }>('GET', `/v2/pods/${pod}`);
      return body.status === 'RUNNING';
    });

  const assertAudited = async (document: OpenApiDocument, prefix: string): Promise<void> => {
    const { body } = await client.call<{ entries: { requestId: string }[] }>(
      'GET',
      '/v2/audit?account=all&limit=1000',
    );
    const audited = new Set(body.entries.map(({ requestId }) => requestId));
    const missing = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods)
        .map((method) => `${method.toUpperCase()} ${prefix}${path}`)
        .filter((operation) => /^(POST|PUT|PATCH|DELETE) /.test(operation) && !JOB_API.test(operation))
        .filter((operation) => !(operation in NOT_AUDITED) && !audited.has(done.get(operation) ?? '')),
    );
    assert.deepEqual(missing, [], 'these have no audit entry, or the test does not perform them');
    for (const operation of Object.keys(NOT_AUDITED))
      if (operation.includes(prefix === '' ? '/v2/' : '/v1/'))
        assert.ok(!audited.has(done.get(operation) ?? 'not done'), `${operation} has an entry`);
  };

  test('has an entry for every operation of REST v2 that changes something', async () => {
    const { id: template } = await act('POST /v2/templates', {}, { name: 'walk', image: 'a' });
    await act('PATCH /v2/templates/{id}', { id: template }, { name: 'walked' });
    await act('DELETE /v2/templates/{id}', { id: template });

    const volumeBody = { name: 'walk', size: 10, dataCenter: 'LOCAL-1' };
    const { id: volume } = await act('POST /v2/network-volumes', {}, volumeBody);
    await act('PATCH /v2/network-volumes/{id}', { id: volume }, { size: 11 });
    await act('POST /v2/network-volumes/{id}/folders', { id: volume }, { path: 'folder' });
    const file = { id: volume, '?': '?path=folder/file' };
    await act('PUT /v2/network-volumes/{id}/files/content', file, 'x', {
      'content-type': 'application/octet-stream',
    });
    await act('DELETE /v2/network-volumes/{id}/files', { id: volume, '?': '?path=folder&recursive=true' });
    await act('DELETE /v2/network-volumes/{id}', { id: volume });

    const registryBody = { name: 'walk', username: 'u', password: 'p' };
    const { id: registry } = await act('POST /v2/registries', {}, registryBody);
    await act('DELETE /v2/registries/{id}', { id: registry });
    const resource = 'arn:aws:ecr:us-east-2:123456789012:repository/walk';
    const { id: delegation } = await act('POST /v2/registries/delegations', {}, { resource });
    await act('DELETE /v2/registries/delegations/{id}', { id: delegation });

    const { id: secret } = await act('POST /v2/account/secrets', {}, { name: 'walk', value: 'v' });
    await act('PATCH /v2/account/secrets/{id}', { id: secret }, { value: 'w' });
    await act('DELETE /v2/account/secrets/{id}', { id: secret });
    await act('PUT /v2/account/ssh-keys', {}, { keys: [] });

    const made = await act('POST /v2/account/api-keys', {}, { name: 'walk', access: 'ALL' });
    await act('PATCH /v2/account/api-keys/{id}', { id: made.id }, { name: 'walked' });
    await client.call('POST', '/login', { key: made['key'] }, { 'x-berth-console': '1' });
    const { body: open } = await client.call<{ sessions: { id: string }[] }>('GET', '/v2/sessions');
    await act('POST /v2/sessions/links');
    await act('DELETE /v2/sessions/{id}', { id: open.sessions[0]?.id ?? '' });
    await act('DELETE /v2/account/api-keys/{id}', { id: made.id });
    const s3Key = await act('POST /v2/account/s3-keys', {}, { name: 'walk' });
    await act('DELETE /v2/account/s3-keys/{id}', { id: s3Key['accessId'] ?? '' });

    const { id: accountId } = await act('POST /v2/accounts', {}, { name: 'walked' });
    await act('PATCH /v2/accounts/{accountId}/limits', { accountId }, { pods: 1 });
    await act('POST /v2/accounts/{id}/api-keys', { id: accountId }, { name: 'k', access: 'ALL' });
    await act('POST /v2/accounts/{id}/s3-keys', { id: accountId }, { name: 's' });
    await act('POST /v2/accounts/{accountId}/disable', { accountId });
    await act('POST /v2/accounts/{accountId}/enable', { accountId });
    await act('DELETE /v2/accounts/{accountId}', { accountId });

    const files = [{ path: 'handler.mjs', data: Buffer.from('x').toString('base64') }];
    await act('POST /v2/images', {}, { name: 'walk', files });
    await act('DELETE /v2/images/{name}', { name: 'walk' });
    await client.call('POST', '/v2/images', { name: 'unused', files });

    await act('POST /v2/pods/check', {}, POD);
    const { id: pod } = await act('POST /v2/pods', {}, POD);
    await running(pod);
    // An archive without entries.
    await act('PUT /v2/pods/{id}/files', { id: pod, '?': '?path=.' }, new Uint8Array(1024), {
      'content-type': 'application/x-tar',
    });
    await act('PATCH /v2/pods/{id}', { id: pod }, { name: 'walked' });
    await act('POST /v2/pods/{id}/action', { id: pod }, { action: 'stop' });
    await act('DELETE /v2/pods/{id}', { id: pod });

    const { id: cluster } = await act(
      'POST /v2/clusters',
      {},
      {
        name: 'walk',
        type: 'TRAINING',
        compute: { gpuTypeId: A40, gpuCountPerPod: 1, podCount: 2 },
        image: 'local/shell',
        cmd: ['sleep', '1000'],
      },
    );
    await act('PATCH /v2/clusters/{id}', { id: cluster }, { name: 'walked' });
    await act('DELETE /v2/clusters/{id}', { id: cluster });
    await act('POST /v2/images/prune');

    const { id } = await act(
      'POST /v2/serverless',
      {},
      queueEndpoint('walk', 'local/echo', { min: 1, max: 1 }),
    );
    const workerId = await waitFor('a worker', async () => {
      const { body } = await client.call<{ workers: { id: string }[] }>(
        'GET',
        `/v2/serverless/${id}/workers`,
      );
      return body.workers[0]?.id;
    });
    await act('POST /v2/serverless/{id}/workers/{workerId}/stop', { id, workerId });
    await act('PATCH /v2/serverless/{id}', { id }, { workers: { min: 0, max: 0 } });
    const endpoint = queueEndpointClient(client, id, fixture.server.key);
    const worker = endpoint.worker();
    const job = await endpoint.run();
    await worker.take();
    await worker.done(job, { error: 'no' });
    await act('POST /v2/serverless/{id}/jobs/retry', { id }, { ids: [job] });
    await act('POST /v2/serverless/{id}/jobs/cancel', { id }, { filter: {} });
    await act('POST /v2/serverless/{id}/jobs/redrive', { id }, { ids: [job] });
    const { body: history } = await client.call<{ releases: { version: number }[] }>(
      'GET',
      `/v2/serverless/${id}/releases`,
    );
    const version = String(history.releases.at(-1)?.version);
    await act('POST /v2/serverless/{id}/releases/{version}/rollback', { id, version });
    await act('DELETE /v2/serverless/{id}', { id });

    await assertAudited(fixture.contract.v2, '');
  });

  test('has an entry for every operation of REST v1 that changes something', async () => {
    for (const update of ['PATCH /v1/templates/{templateId}', 'POST /v1/templates/{templateId}/update']) {
      const { id: templateId } = await act('POST /v1/templates', {}, { name: 'walk', imageName: 'a' });
      await act(update, { templateId }, { name: 'walked' });
      await act('DELETE /v1/templates/{templateId}', { templateId });
    }
    const { id: networkVolumeId } = await act(
      'POST /v1/networkvolumes',
      {},
      { name: 'walk', size: 10, dataCenterId: 'LOCAL-1' },
    );
    const volume = { networkVolumeId };
    await act('PATCH /v1/networkvolumes/{networkVolumeId}', volume, { name: 'walked' });
    await act('POST /v1/networkvolumes/{networkVolumeId}/update', volume, { size: 11 });
    await act('DELETE /v1/networkvolumes/{networkVolumeId}', volume);
    const { id: containerRegistryAuthId } = await act(
      'POST /v1/containerregistryauth',
      {},
      { name: 'walk', username: 'u', password: 'p' },
    );
    await act('DELETE /v1/containerregistryauth/{containerRegistryAuthId}', { containerRegistryAuthId });
    const { id: templateId } = await act(
      'POST /v1/templates',
      {},
      { name: 'served', imageName: 'local/echo', isServerless: true },
    );
    const { id: endpointId } = await act(
      'POST /v1/endpoints',
      {},
      { templateId, computeType: 'CPU', workersMin: 0, workersMax: 0 },
    );
    await act('PATCH /v1/endpoints/{endpointId}', { endpointId }, { name: 'walked' });
    await act('POST /v1/endpoints/{endpointId}/update', { endpointId }, { name: 'walked again' });
    await act('DELETE /v1/endpoints/{endpointId}', { endpointId });
    const { id: podId } = await act(
      'POST /v1/pods',
      {},
      { name: 'walk', imageName: 'local/shell', computeType: 'CPU', dockerStartCmd: ['sleep', '1000'] },
    );
    await act('PATCH /v1/pods/{podId}', { podId }, { name: 'walked' });
    await act('POST /v1/pods/{podId}/update', { podId }, { name: 'walked again' });
    for (const action of ['restart', 'reset', 'stop', 'start']) {
      if (action !== 'start') await running(podId);
      await act(`POST /v1/pods/{podId}/${action}`, { podId });
    }
    await act('DELETE /v1/pods/{podId}', { podId });
    await assertAudited(fixture.contract.v1, '/v1');
  });
});
