import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cpuPrices, ZERO_PRICES, gpuPrices } from './prices.ts';

test('what the operator does not price costs nothing', () => {
  assert.deepEqual(gpuPrices(ZERO_PRICES, 'NVIDIA L4'), {
    secure: 0,
    community: 0,
    serverless: 0,
    spot: 0,
  });
  assert.deepEqual(cpuPrices(ZERO_PRICES, 'cpu3c'), { secure: 0, serverless: 0 });
});

test('what the operator prices costs that', () => {
  const settings = {
    gpu: { 'NVIDIA L4': { secure: 0.39, spot: 0.2 } },
    cpu: { cpu3c: { serverless: 0.03 } },
  };
  assert.deepEqual(gpuPrices(settings, 'NVIDIA L4'), {
    secure: 0.39,
    community: 0,
    serverless: 0,
    spot: 0.2,
  });
  assert.deepEqual(cpuPrices(settings, 'cpu3c'), { secure: 0, serverless: 0.03 });
});

test('one number is the price of every kind of use', () => {
  const settings = { gpu: { 'NVIDIA A40': 0.4 }, cpu: { cpu3c: 0.04 } };
  assert.deepEqual(gpuPrices(settings, 'NVIDIA A40'), {
    secure: 0.4,
    community: 0.4,
    serverless: 0.4,
    spot: 0.4,
  });
  assert.deepEqual(cpuPrices(settings, 'cpu3c'), { secure: 0.04, serverless: 0.04 });
});
