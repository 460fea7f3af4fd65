import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CpuMeter } from './cpu-meter.ts';

test('processors are counted from look to look', () => {
  const meter = new CpuMeter(1, 1000);
  assert.equal(meter.update(3, 5000), 0.5);
  assert.equal(meter.update(5, 6000), 2);
  assert.equal(meter.update(4, 7000), 0, 'where the count begins anew');
});

test('looks that come too soon say what the last one said, and take nothing from the next', () => {
  const meter = new CpuMeter(0, 1000);
  assert.equal(meter.update(0.05, 1010), 0);
  assert.equal(meter.update(1, 2000), 1);
  assert.equal(meter.update(1.4, 2400), 1);
  assert.equal(meter.update(1.5, 3000), 0.5);
});

test('a clock that is set back holds nothing up', () => {
  const meter = new CpuMeter(0, 100_000);
  assert.equal(meter.update(1, 1000), 0);
  assert.equal(meter.update(2, 2000), 1);
});
