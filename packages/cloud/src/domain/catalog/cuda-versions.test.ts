import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { compareCudaVersions, CUDA_VERSIONS } from './cuda-versions.ts';

const part = fc.nat({ max: 40 });

describe('CUDA versions', () => {
  test('are compared by number', () => {
    assert.ok(compareCudaVersions('12.11', '12.2') > 0);
    assert.ok(compareCudaVersions('9.2', '11.8') < 0);
    assert.equal(compareCudaVersions('12.8', '12.8'), 0);
    assert.equal(compareCudaVersions('12', '12.0'), 0);
  });

  test('are listed newest first, each once', () => {
    for (const [index, version] of CUDA_VERSIONS.slice(1).entries())
      assert.ok(compareCudaVersions(CUDA_VERSIONS[index] ?? '', version) > 0, version);
  });

  test('order is that of the pair of numbers', () => {
    fc.assert(
      fc.property(part, part, part, part, (majorA, minorA, majorB, minorB) => {
        const expected = Math.sign(majorA * 1000 + minorA - (majorB * 1000 + minorB));
        assert.equal(Math.sign(compareCudaVersions(`${majorA}.${minorA}`, `${majorB}.${minorB}`)), expected);
      }),
    );
  });
});
