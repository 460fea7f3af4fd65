import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

interface Volume {
  id: string;
  name: string;
  size: number;
}

for (const kind of DATABASES) {
  describe(`network volumes, on ${kind}`, () => {
    const fixture = serverFixture(kind, { BERTH_DATA_CENTERS: 'LOCAL-1,LOCAL-2' });
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });
    const v1 = async (fields: object = {}) =>
      ann.call<Volume>('POST', '/v1/networkvolumes', {
        name: 'data',
        size: 20,
        dataCenterId: 'LOCAL-1',
        ...fields,
      });
    const v2 = async (fields: object = {}) =>
      ann.call<Volume>('POST', '/v2/network-volumes', {
        name: 'data',
        size: 20,
        dataCenter: 'LOCAL-1',
        ...fields,
      });

    test('are made through either interface and seen through both, names repeated as you like', async () => {
      const [one, two] = [await v1(), await v2({ type: 'HIGH_PERFORMANCE', dataCenter: 'LOCAL-2' })];
      assert.deepEqual([one.status, two.status], [200, 201]);
      assert.deepEqual(one.body, { id: one.body.id, name: 'data', size: 20, dataCenterId: 'LOCAL-1' });
      assert.deepEqual(two.body, {
        id: two.body.id,
        name: 'data',
        size: 20,
        dataCenter: 'LOCAL-2',
        type: 'HIGH_PERFORMANCE',
        used: 0,
      });
      assert.deepEqual((await ann.call('GET', `/v2/network-volumes/${one.body.id}`)).body, {
        id: one.body.id,
        name: 'data',
        size: 20,
        dataCenter: 'LOCAL-1',
        type: 'STANDARD',
        used: 0,
      });
      assert.deepEqual((await ann.call('GET', `/v1/networkvolumes/${two.body.id}`)).body, {
        id: two.body.id,
        name: 'data',
        size: 20,
        dataCenterId: 'LOCAL-2',
      });
      assert.equal((await ann.call<Volume[]>('GET', '/v1/networkvolumes')).body.length, 2);
      assert.equal(
        (await ann.call<{ networkVolumes: Volume[] }>('GET', '/v2/network-volumes')).body.networkVolumes
          .length,
        2,
      );
    });

    test('have the bounds of the interface that makes them', async () => {
      const sizes = async (make: typeof v1, list: unknown[]): Promise<number[]> =>
        Promise.all(list.map(async (size) => (await make({ size })).status));
      assert.deepEqual(
        await sizes(v1, [0, 1, 4000, 4001, -1, 1.5, '20', null]),
        [200, 200, 200, 400, 400, 400, 400, 400],
      );
      assert.deepEqual(
        await sizes(v2, [10, 4096, 9, 4097, -1, 1.5, '20', null]),
        [201, 201, 422, 422, 422, 422, 422, 422],
      );
    });

    test('that are small in v1 are still read and grown in v2', async () => {
      const { body } = await v1({ size: 0 });
      assert.equal((await ann.call<Volume>('GET', `/v2/network-volumes/${body.id}`)).body.size, 0);
      assert.equal((await ann.call('PATCH', `/v2/network-volumes/${body.id}`, { size: 5 })).status, 422);
      assert.equal(
        (await ann.call<Volume>('PATCH', `/v2/network-volumes/${body.id}`, { size: 10 })).body.size,
        10,
      );
    });

    test('only grow: in v1 and GraphQL strictly, in v2 the same size is no mistake', async () => {
      const { id } = (await v1()).body;
      const size = async (): Promise<number> =>
        (await ann.call<Volume>('GET', `/v1/networkvolumes/${id}`)).body.size;
      for (const path of [`/v1/networkvolumes/${id}/update`])
        for (const wanted of [20, 19])
          assert.equal((await ann.call('POST', path, { size: wanted })).status, 400);
      for (const wanted of [20, 19, 0])
        assert.equal((await ann.call('PATCH', `/v1/networkvolumes/${id}`, { size: wanted })).status, 400);
      assert.equal((await ann.call('PATCH', `/v2/network-volumes/${id}`, { size: 20 })).status, 200);
      assert.equal((await ann.call('PATCH', `/v2/network-volumes/${id}`, { size: 19 })).status, 400);
      const { body } = await ann.graphql(
        `mutation { updateNetworkVolume(input: { id: "${id}", size: 20 }) { id } }`,
      );
      assert.match(body.errors?.[0]?.message ?? '', /greater than the current size/);
      assert.equal(await size(), 20);
      assert.equal((await ann.call<Volume>('PATCH', `/v1/networkvolumes/${id}`, { size: 21 })).body.size, 21);
      assert.equal(
        (await ann.call<Volume>('POST', `/v1/networkvolumes/${id}/update`, { name: 'renamed', size: 22 }))
          .body.name,
        'renamed',
      );
      assert.equal(
        (await ann.call<Volume>('PATCH', `/v2/network-volumes/${id}`, { size: 4096 })).body.size,
        4096,
      );
      assert.equal(
        (await ann.call<Volume>('PATCH', `/v1/networkvolumes/${id}`, { name: 'beyond v1' })).body.size,
        4096,
      );
    });

    test('that many want to grow at once end at the largest, and no refusal was wrong', async () => {
      const { id } = (await v2()).body;
      const wanted = Array.from({ length: 12 }, (_, index) => 100 + index);
      const answers = await Promise.all(
        wanted.map((size) => ann.call<Volume>('PATCH', `/v2/network-volumes/${id}`, { size })),
      );
      assert.ok(answers.every(({ status }) => status === 200 || status === 400));
      assert.equal((await ann.call<Volume>('GET', `/v2/network-volumes/${id}`)).body.size, 111);
    });

    test('change in name or size and in nothing else', async () => {
      const { id } = (await v2()).body;
      assert.equal((await ann.call('PATCH', `/v2/network-volumes/${id}`, {})).status, 422);
      assert.equal((await ann.call('PATCH', `/v1/networkvolumes/${id}`, {})).status, 200);
      assert.equal(
        (await ann.call('PATCH', `/v2/network-volumes/${id}`, { dataCenter: 'LOCAL-2' })).status,
        422,
      );
      assert.equal(
        (await ann.call('PATCH', `/v2/network-volumes/${id}`, { type: 'HIGH_PERFORMANCE' })).status,
        422,
      );
      const extra = await ann.call<{ message: string }>('PATCH', `/v1/networkvolumes/${id}`, {
        dataCenterId: 'LOCAL-2',
      });
      assert.equal(extra.status, 400);
      assert.match(extra.body.message, /Extra input keys provided in request body/);
    });

    test('need a data center that is here; the refusal lists those that are', async () => {
      const refused = await v2({ dataCenter: 'EU-RO-1' });
      assert.equal(refused.status, 400);
      assert.match(refused.text, /available: LOCAL-1, LOCAL-2/);
      assert.equal((await v1({ dataCenterId: 'EU-RO-1' })).status, 400);
      assert.equal((await v2({ type: 'FASTEST' })).status, 422);
    });

    test('are deleted with 204 and gone', async () => {
      for (const path of ['/v1/networkvolumes', '/v2/network-volumes']) {
        const { id } = (await v2()).body;
        const answer = await ann.call('DELETE', `${path}/${id}`);
        assert.deepEqual([answer.status, answer.text, answer.headers.get('content-type')], [204, '', null]);
        assert.equal((await ann.call('DELETE', `${path}/${id}`)).status, 404);
        assert.equal((await ann.call('PATCH', `${path}/${id}`, { name: 'x' })).status, 404);
      }
    });
  });
}
