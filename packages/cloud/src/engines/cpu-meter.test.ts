import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CpuMeter } from './cpu-meter.ts';

test('CPU use is measured between two updates', () => {
  const meter = new CpuMeter(1, 1000);
  assert.equal(meter.update(3, 5000), 0.5);
  assert.equal(meter.update(5, 6000), 2);
  assert.equal(meter.update(4, 7000), 0, 'when the counter restarts');
});

test('an update within the minimum interval repeats the last value and is not counted', () => {
  const meter = new CpuMeter(0, 1000);
  assert.equal(meter.update(0.05, 1010), 0);
  assert.equal(meter.update(1, 2000), 1);
  assert.equal(meter.update(1.4, 2400), 1);
  assert.equal(meter.update(1.5, 3000), 0.5);
});

test('a clock that is set back restarts the measurement', () => {
  const meter = new CpuMeter(0, 100_000);
  assert.equal(meter.update(1, 1000), 0);
  assert.equal(meter.update(2, 2000), 1);
});
