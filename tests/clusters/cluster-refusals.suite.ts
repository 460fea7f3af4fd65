import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiClient } from '../../packages/testing/src/api-client.ts';
import { clusterClient, COMPUTE } from './cluster-client.ts';

interface Owners {
  ann: ApiClient;
  bob: ApiClient;
  clientWith(key: string | undefined): ApiClient;
}

/** What is wrong, or not allowed, changes nothing. */
export function clusterRefusalsSuite(owners: () => Owners): void {
  const { bodyOf, create, refused, get, membersOf, nothingIsLeft } = clusterClient(() => owners().ann);

  test('bad input gets the documented status and a clear word, and nothing is made', async () => {
    const { ann } = owners();
    const shapes: [string, Record<string, unknown>, number][] = [
      ['no name', { name: undefined }, 422],
      ['an empty name', { name: '' }, 422],
      ['no type', { type: undefined }, 422],
      ['an unknown type', { type: 'SWARM' }, 422],
      ['no shape', { compute: undefined }, 422],
      ['one pod', { compute: { ...COMPUTE, podCount: 1 } }, 422],
      ['251 pods', { compute: { ...COMPUTE, podCount: 251 } }, 422],
      ['half a pod', { compute: { ...COMPUTE, podCount: 2.5 } }, 422],
      ['no GPU', { compute: { ...COMPUTE, gpuCountPerPod: 0 } }, 422],
      ['an unknown field of the shape', { compute: { ...COMPUTE, cpu: 1 } }, 422],
      ['registry credentials', { registry: 'x' }, 422],
      ['an unknown field', { interruptible: true }, 422],
      ['neither image nor template', { image: undefined }, 422],
      ['an unknown GPU type', { compute: { ...COMPUTE, gpuTypeId: 'NVIDIA Abacus' } }, 400],
      ['a GPU type that is not here', { compute: { ...COMPUTE, gpuTypeId: 'NVIDIA H200' } }, 400],
      ['more GPUs in a pod than there are', { compute: { ...COMPUTE, gpuCountPerPod: 9 } }, 400],
      ['an unknown data center', { dataCenterIds: ['MOON-1'] }, 400],
      [
        'both mounts',
        { mounts: { persistent: { size: 10, path: '/a' }, network: [{ volumeId: 'v', path: '/b' }] } },
        400,
      ],
      ['an unknown network volume', { mounts: { network: [{ volumeId: 'unknown', path: '/a' }] } }, 400],
      ['an image that needs containers', { image: 'python:3.12' }, 400],
      ['a port that is none', { ports: ['http'] }, 400],
      [
        '51 variables',
        { env: Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`V${index}`, ''])) },
        400,
      ],
    ];
    for (const [what, more, status] of shapes) {
      const answer = await refused(more);
      assert.equal(answer.status, status, `${what}: ${answer.text}`);
      assert.ok((JSON.parse(answer.text) as { detail: string }).detail.length > 10, what);
    }
    await nothingIsLeft();
    const { id } = await create({ compute: { ...COMPUTE, podCount: 2 } });
    for (const [body, status] of [
      [{}, 422],
      [{ name: '' }, 422],
      [{ compute: COMPUTE }, 422],
      [{ name: 'x', type: 'RAY' }, 422],
      [{ name: 'x'.repeat(192) }, 422],
    ] as const)
      assert.equal(
        (await ann.call('PATCH', `/v2/clusters/${id}`, body)).status,
        status,
        JSON.stringify(body),
      );
    assert.equal((await get(id)).name, 'c');
    assert.equal((await ann.call('PUT', `/v2/clusters/${id}`, {})).status, 405);
    assert.equal((await ann.call('POST', `/v2/clusters/${id}/pods`, {})).status, 405);
  });

  test("another account's cluster is not there, and a key without the scope is refused", async () => {
    const { ann, bob, clientWith } = owners();
    const { id } = await create({ compute: { ...COMPUTE, podCount: 2 } });
    const [member] = await membersOf(id);
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['GET', '/pods', undefined],
      ['PATCH', '', { name: 'bob' }],
      ['DELETE', '', undefined],
    ] as const)
      assert.equal(
        (await bob.call(method, `/v2/clusters/${id}${path}`, body)).status,
        404,
        `${method} ${path}`,
      );
    assert.equal((await bob.call('GET', `/v2/pods/${member?.id}`)).status, 404);
    assert.deepEqual((await bob.call<{ clusters: [] }>('GET', '/v2/clusters')).body.clusters, []);
    const { body } = await ann.call<{ key: string }>('POST', '/v2/account/api-keys', {
      name: 'reader',
      access: 'READ_ONLY',
    });
    const reader = clientWith(body.key);
    assert.equal((await reader.call('GET', `/v2/clusters/${id}`)).status, 200);
    assert.deepEqual(
      [
        (await reader.call('POST', '/v2/clusters', bodyOf())).status,
        (await reader.call('PATCH', `/v2/clusters/${id}`, { name: 'x' })).status,
        (await reader.call('DELETE', `/v2/clusters/${id}`)).status,
      ],
      [403, 403, 403],
    );
    assert.equal((await clientWith(undefined).call('GET', '/v2/clusters')).status, 401);
    assert.equal((await get(id)).name, 'c');
  });
}
