import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type CpuFlavor, findCpuFlavor } from '../../domain/catalog/cpu-flavors.ts';
import { type CpuOffer, cpuOffer, type CpuRequest } from './cpu-offer.ts';
import { type DataCenterDefinition, DEFAULT_DATA_CENTERS } from '../../domain/catalog/data-centers.ts';
import { cpuPrices, ZERO_PRICES } from '../../domain/catalog/prices.ts';
import { NO_CAPACITY } from '../../domain/placement/engine-capacity.ts';

const [local] = DEFAULT_DATA_CENTERS as [DataCenterDefinition];

function offer(flavorId: string, memoryInGb: number, request: CpuRequest = {}): CpuOffer {
  const flavor = findCpuFlavor(flavorId) as CpuFlavor;
  return cpuOffer(
    flavor,
    [{ dataCenter: local, capacity: { ...NO_CAPACITY, memoryInGb } }],
    request,
    cpuPrices(ZERO_PRICES, flavorId),
  );
}

describe('a CPU offer', () => {
  test('is limited by memory', () => {
    assert.equal(offer('cpu3c', 4).availability, 'LOW');
    assert.equal(offer('cpu3c', 64).availability, 'HIGH');
    assert.equal(offer('cpu3m', 15).availability, 'NONE');
    assert.deepEqual(offer('cpu3m', 16).dataCenters, [
      { id: 'LOCAL-1', name: 'This machine', availability: 'LOW' },
    ]);
  });

  test('is not limited by cores, which are shared', () => {
    assert.equal(offer('cpu3c', 64, { vcpuCount: 32 }).availability, 'LOW');
  });

  test('a size that the flavor does not have is not available', () => {
    assert.deepEqual(
      [
        offer('cpu3c', 1000, { vcpuCount: 64 }).availability,
        offer('cpu3c', 1000, { vcpuCount: 64 }).dataCenters,
      ],
      ['NONE', []],
    );
    assert.equal(offer('cpu3c', 1000, { vcpuCount: 1 }).availability, 'NONE');
  });

  test('a product that the flavor does not support is not available', () => {
    assert.equal(offer('cpu5m', 1000, { products: ['SERVERLESS'] }).availability, 'NONE');
    assert.equal(offer('cpu5m', 1000, { products: ['SERVERLESS', 'POD'] }).availability, 'HIGH');
    assert.equal(offer('cpu5g', 1000, { products: ['SERVERLESS'] }).availability, 'HIGH');
  });
});
