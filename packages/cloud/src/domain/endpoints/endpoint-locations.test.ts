import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { NetworkVolume } from '../records.ts';
import { sampleCatalogSnapshot } from '../../resources/endpoints/endpoint.fixture.ts';
import {
  dataCenterFindings,
  dataCentersInLocations,
  locationsOf,
  volumeFindings,
} from './endpoint-locations.ts';

const volume = (id: string, dataCenterId: string): NetworkVolume => ({
  id,
  accountId: 'a',
  name: id,
  size: 10,
  dataCenterId,
  type: 'STANDARD',
  createdAt: 1,
});

describe('the place of an endpoint', () => {
  test('may be data centers or countries; those that do not exist here are ignored', () => {
    const at = (locations: string): string[] =>
      dataCentersInLocations(locations, sampleCatalogSnapshot.dataCenters);
    assert.deepEqual(at('EU-RO-1'), ['EU-RO-1']);
    assert.deepEqual(at('ro, local-1'), ['LOCAL-1', 'EU-RO-1']);
    assert.deepEqual(at('US-TX-3,RO'), ['EU-RO-1']);
    assert.deepEqual(at('US-TX-3'), []);
    assert.deepEqual(at(''), []);
  });

  test('is shown as it was given, or as its data centers', () => {
    assert.equal(locationsOf({ locations: 'US, EU-RO-1', dataCenterIds: ['EU-RO-1'] }), 'US, EU-RO-1');
    assert.equal(locationsOf({ locations: '', dataCenterIds: ['LOCAL-1', 'EU-RO-1'] }), 'LOCAL-1,EU-RO-1');
  });

  test('contains only data centers that exist here', () => {
    assert.deepEqual(dataCenterFindings([], sampleCatalogSnapshot), []);
    assert.deepEqual(dataCenterFindings(['LOCAL-1', 'EU-RO-1'], sampleCatalogSnapshot), []);
    assert.deepEqual(dataCenterFindings(['US-TX-3'], sampleCatalogSnapshot), [
      'data center "US-TX-3" does not exist here; available: LOCAL-1, EU-RO-1',
    ]);
  });

  test('has one volume in each data center, of the account, where the endpoint may be', () => {
    const wanted = (networkVolumeIds: string[], dataCenterIds: string[] = []) => ({
      networkVolumeIds,
      dataCenterIds,
    });
    const [one, two, other] = [volume('v1', 'LOCAL-1'), volume('v2', 'LOCAL-1'), volume('v3', 'EU-RO-1')];
    assert.deepEqual(volumeFindings(wanted([]), []), []);
    assert.deepEqual(volumeFindings(wanted(['v1', 'v3']), [one, other]), []);
    assert.deepEqual(volumeFindings(wanted(['v3'], ['EU-RO-1']), [other]), []);
    assert.match(
      volumeFindings(wanted(['v1', 'gone']), [one]).join(),
      /"gone" does not exist in this account/,
    );
    assert.match(
      volumeFindings(wanted(['v1', 'gone']), [one], 3).join(),
      /release 3 used network volume "gone", which was deleted/,
    );
    assert.match(volumeFindings(wanted(['v1', 'v2']), [one, two]).join(), /v1 and v2 are both in LOCAL-1/);
    assert.match(
      volumeFindings(wanted(['v1'], ['EU-RO-1']), [one]).join(),
      /v1 is in LOCAL-1, which is not among the data centers EU-RO-1/,
    );
  });
});
