import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noPrices, pricesType } from './prices.setting.ts';

const read = (value: unknown) => pricesType().fromFile(value);

test('prices are one number, or one for each kind of use', () => {
  const given = {
    gpu: { X: 0.4, Y: { secure: 2, spot: 1 } },
    cpu: { cpu3c: { serverless: 0.03 } },
    disk: { container: 0.1, stoppedVolume: 0.2, networkVolumeAbove1TB: 0.05 },
  };
  assert.deepEqual(read(given), given);
  assert.deepEqual(read({ gpu: null, disk: { volume: 0 } }), { ...noPrices, disk: { volume: 0 } });
});

test('invalid prices are refused', () => {
  for (const wrong of [
    [],
    'free',
    { ram: {} },
    { gpu: 1 },
    { gpu: { X: -1 } },
    { gpu: { X: 1_001 } },
    { gpu: { X: '1' } },
    { gpu: { X: { cheap: 1 } } },
    { gpu: { X: { secure: Number.NaN } } },
    { cpu: { c: { spot: 1 } } },
    { disk: { floppy: 1 } },
    { disk: { volume: { secure: 1 } } },
  ]) {
    assert.equal(read(wrong), undefined, JSON.stringify(wrong));
  }
});
