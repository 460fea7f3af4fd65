import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type DataCenterDefinition,
  DEFAULT_DATA_CENTERS,
  DEFAULT_NETWORK_VOLUME_TYPE,
  defineDataCenter,
  matchesDataCenter,
} from './data-centers.ts';

const paris: DataCenterDefinition = {
  id: 'EU-FR-1',
  name: 'Paris',
  region: 'EUROPE',
  engine: 'process',
  networkVolumeTypes: ['STANDARD'],
  compliance: ['GDPR', 'HIPAA'],
  globalNetwork: true,
  countryCode: 'FR',
};

describe('data centers', () => {
  test('without settings there is one, this machine', () => {
    assert.deepEqual(
      DEFAULT_DATA_CENTERS.map(({ id, name, engine }) => [id, name, engine]),
      [['LOCAL-1', 'This machine', 'process']],
    );
    assert.equal(DEFAULT_DATA_CENTERS[0]?.networkVolumeTypes[0], DEFAULT_NETWORK_VOLUME_TYPE);
  });

  test('a definition keeps its values and gets defaults for the rest', () => {
    const rack = defineDataCenter({ id: 'EU-1', engine: 'docker', region: 'EUROPE', countryCode: 'DE' });
    assert.deepEqual(
      [rack.name, rack.engine, rack.region, rack.countryCode, rack.globalNetwork],
      ['EU-1', 'docker', 'EUROPE', 'DE', false],
    );
    assert.equal(defineDataCenter({ id: 'EU-1', name: 'Rack 7' }).name, 'Rack 7');
  });

  test('match a search without conditions', () => {
    assert.ok(matchesDataCenter(paris, {}));
    assert.ok(
      matchesDataCenter(paris, {
        regions: [],
        compliance: [],
        countryCodes: [],
        networkVolumeTypes: [],
        ids: [],
      }),
    );
  });

  test('one region and one country of those named is enough', () => {
    assert.ok(matchesDataCenter(paris, { regions: ['ASIA', 'EUROPE'], countryCodes: ['DE', 'FR'] }));
    assert.ok(!matchesDataCenter(paris, { regions: ['ASIA'] }));
    assert.ok(!matchesDataCenter(paris, { countryCodes: ['DE'] }));
    assert.ok(!matchesDataCenter({ ...paris, countryCode: null }, { countryCodes: ['FR'] }));
  });

  test('every tier and every certificate named is needed', () => {
    assert.ok(matchesDataCenter(paris, { compliance: ['GDPR', 'HIPAA'] }));
    assert.ok(!matchesDataCenter(paris, { compliance: ['GDPR', 'ITAR'] }));
    assert.ok(!matchesDataCenter(paris, { networkVolumeTypes: ['STANDARD', 'HIGH_PERFORMANCE'] }));
  });

  test('conditions of several kinds must all hold', () => {
    assert.ok(matchesDataCenter(paris, { ids: ['EU-FR-1'], globalNetwork: true, regions: ['EUROPE'] }));
    assert.ok(!matchesDataCenter(paris, { ids: ['EU-FR-1'], globalNetwork: false, regions: ['EUROPE'] }));
    assert.ok(!matchesDataCenter(paris, { ids: ['LOCAL-1'] }));
  });
});
