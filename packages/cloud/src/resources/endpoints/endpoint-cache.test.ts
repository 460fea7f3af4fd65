import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import type { Endpoint } from '../../domain/records.ts';
import { ManualClock } from '../../support/clock.ts';
import { EndpointCache } from './endpoint-cache.ts';
import { sampleEndpoint } from './endpoint.fixture.ts';

describe('the endpoint cache', () => {
  let clock: ManualClock;
  let stored: Map<string, Endpoint>;
  let asked: string[];
  let directory: EndpointCache;

  beforeEach(() => {
    clock = new ManualClock();
    stored = new Map([['e', sampleEndpoint]]);
    asked = [];
    const findAnywhere = async (id: string): Promise<Endpoint | undefined> => {
      asked.push(id);
      return stored.get(id);
    };
    directory = new EndpointCache({ findInAnyAccount: findAnywhere }, clock, 2000);
  });

  test('reads an endpoint from the store once, also for concurrent requests', async () => {
    const found = await Promise.all([directory.find('e'), directory.find('e'), directory.find('e')]);
    assert.deepEqual(found, [sampleEndpoint, sampleEndpoint, sampleEndpoint]);
    await directory.find('e');
    assert.deepEqual(asked, ['e']);
  });

  test('returns a change after invalidation, or when the entry is too old', async () => {
    await directory.find('e');
    stored.set('e', { ...sampleEndpoint, name: 'changed' });
    assert.equal((await directory.find('e'))?.name, 'worker');
    directory.invalidate('e');
    assert.equal((await directory.find('e'))?.name, 'changed');
    stored.set('e', { ...sampleEndpoint, name: 'again' });
    clock.advance(1999);
    assert.equal((await directory.find('e'))?.name, 'changed');
    clock.advance(1);
    assert.equal((await directory.find('e'))?.name, 'again');
    stored.delete('e');
    directory.invalidate();
    assert.equal(await directory.find('e'), undefined);
  });

  test('does not cache a read that started before an invalidation', async () => {
    const early = directory.find('e');
    stored.set('e', { ...sampleEndpoint, name: 'changed' });
    directory.invalidate('e');
    assert.equal((await early)?.name, 'worker');
    assert.equal((await directory.find('e'))?.name, 'changed');
  });

  test('does not cache unknown ids', async () => {
    assert.equal(await directory.find('nobody'), undefined);
    stored.set('nobody', sampleEndpoint);
    assert.deepEqual(await directory.find('nobody'), sampleEndpoint);
  });

  test('does not cache errors', async () => {
    let broken = true;
    const shaky = new EndpointCache(
      { findInAnyAccount: async () => (broken ? Promise.reject(new Error('away')) : sampleEndpoint) },
      clock,
    );
    await assert.rejects(shaky.find('e'), /away/);
    broken = false;
    assert.deepEqual(await shaky.find('e'), sampleEndpoint);
  });
});
