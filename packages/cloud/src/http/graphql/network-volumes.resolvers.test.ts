import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { onlyResult, startGraphqlFixture } from './graphql.fixture.ts';
import type { GraphqlFixture, GraphqlResponse } from './graphql.fixture.ts';

describe('network volumes', () => {
  let berth: GraphqlFixture;
  before(async () => {
    berth = await startGraphqlFixture();
  });
  after(() => berth.close());

  const ALL = '{ id name size dataCenterId dataCenter { id name } type }';
  const create = (input: Record<string, unknown>, key?: string): Promise<GraphqlResponse> =>
    berth.call('createNetworkVolume', 'CreateNetworkVolumeInput', ALL, input, key);
  const update = (input: Record<string, unknown>, key?: string): Promise<GraphqlResponse> =>
    berth.call('updateNetworkVolume', 'UpdateNetworkVolumeInput', ALL, input, key);
  const remove = (id: string, key?: string): Promise<GraphqlResponse> =>
    berth.call('deleteNetworkVolume', 'DeleteNetworkVolumeInput', '', { id }, key);

  test('are made, listed, grown, renamed and deleted', async () => {
    const key = await berth.account('volumes');
    const volume = onlyResult(await create({ name: 'data', size: 5, dataCenterId: 'EU-RO-1' }, key));
    assert.deepEqual(volume, {
      id: volume.id,
      name: 'data',
      size: 5,
      dataCenterId: 'EU-RO-1',
      dataCenter: { id: 'EU-RO-1', name: 'Bucharest' },
      type: 'STANDARD',
    });
    assert.deepEqual((await berth.ask(`{ myself { networkVolumes ${ALL} } }`, { key })).data, {
      myself: { networkVolumes: [volume] },
    });
    assert.deepEqual(onlyResult(await update({ id: volume.id, size: 6 }, key)), { ...volume, size: 6 });
    assert.deepEqual(onlyResult(await update({ id: volume.id, name: 'renamed', size: null }, key)), {
      ...volume,
      size: 6,
      name: 'renamed',
    });
    assert.equal((await remove(volume.id, key)).text, '{"data":{"deleteNetworkVolume":null}}');
    assert.deepEqual((await berth.ask('{ myself { networkVolumes { id } } }', { key })).data, {
      myself: { networkVolumes: [] },
    });
  });

  test('may be of the faster type', async () => {
    assert.equal(
      onlyResult(await create({ name: 'fast', size: 10, dataCenterId: 'LOCAL-1', type: 'HIGH_PERFORMANCE' }))[
        'type'
      ],
      'HIGH_PERFORMANCE',
    );
    assert.match(
      (await create({ name: 'x', size: 10, dataCenterId: 'LOCAL-1', type: 'TAPE' })).message,
      /type must be one of STANDARD, HIGH_PERFORMANCE/,
    );
  });

  test('have from 0 to 4000 GB and only grow', async () => {
    const { id } = onlyResult(await create({ name: 'edge', size: 0, dataCenterId: 'LOCAL-1' }));
    assert.equal(onlyResult(await update({ id, size: 4000 }))['size'], 4000);
    for (const [size, message] of [
      [4001, /from 0 to 4000, got 4001/],
      [-1, /from 0 to 4000, got -1/],
      [4000, /must be greater than the current size of 4000/],
      [3999, /cannot shrink/],
    ] as const) {
      assert.match((await update({ id, size })).message, message);
    }
    assert.match(
      (await create({ name: 'x', size: 4001, dataCenterId: 'LOCAL-1' })).message,
      /from 0 to 4000/,
    );
  });

  test('need a name, a size and a data center that exists', async () => {
    assert.equal(
      (await create({ name: '', size: 1 })).message,
      'name and dataCenterId are required: missing or empty',
    );
    assert.match(
      (await create({ name: 'x', size: 1, dataCenterId: 'MOON-1' })).message,
      /data center "MOON-1" does not exist here; available: LOCAL-1, EU-RO-1/,
    );
    assert.equal((await update({ name: 'x' })).message, 'id is required: missing or empty');
  });

  test('that are gone are deleted with the sentence that dstack looks for', async () => {
    const answer = await remove('nowhere');
    assert.equal(answer.status, 200);
    assert.match(answer.message, /Tried to delete nonexistent network volume/);
    assert.equal(answer.code, 'NOT_FOUND');
  });

  test('of others are not there', async () => {
    const { id } = onlyResult(await create({ name: 'mine', size: 1, dataCenterId: 'LOCAL-1' }));
    const key = await berth.account('volume thief');
    assert.equal((await update({ id, name: 'stolen' }, key)).code, 'NOT_FOUND');
    assert.match((await remove(id, key)).message, /Tried to delete nonexistent network volume/);
    assert.equal(onlyResult(await update({ id, name: 'still mine' }))['name'], 'still mine');
  });
});
