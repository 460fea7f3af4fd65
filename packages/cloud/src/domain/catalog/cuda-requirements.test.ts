import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { cudaVersionsOf, matchesCuda, meetsCudaRequirement } from './cuda-requirements.ts';
import { compareCudaVersions, CUDA_VERSIONS } from './cuda-versions.ts';

const real = (cudaVersion: string | null) => ({ virtual: false, cudaVersion });
const virtual = { virtual: true, cudaVersion: null };
const version = fc
  .tuple(fc.integer({ min: 9, max: 14 }), fc.nat({ max: 12 }))
  .map(([major, minor]) => `${major}.${minor}`);

describe('matching CUDA', () => {
  test('a list is matched exactly', () => {
    assert.ok(matchesCuda(real('12.8'), { allowed: ['12.6', '12.8'] }));
    assert.ok(!matchesCuda(real('12.8'), { allowed: ['12.6'] }));
    assert.ok(!matchesCuda(real('12.8'), { allowed: ['12'] }));
  });

  test('a floor is matched by number', () => {
    assert.ok(matchesCuda(real('12.11'), { minimum: '12.2' }));
    assert.ok(!matchesCuda(real('12.1'), { minimum: '12.2' }));
    assert.ok(matchesCuda(real('12.0'), { minimum: '12' }));
  });

  test('a GPU without CUDA matches requests without CUDA requirements', () => {
    for (const nothing of [{}, { allowed: [] }, { minimum: null }])
      assert.ok(matchesCuda(real(null), nothing));
    assert.ok(!matchesCuda(real(null), { minimum: '11.8' }));
    assert.ok(!matchesCuda(real(null), { allowed: ['11.8'] }));
  });

  test('a virtual GPU stands in for every known version and no other', () => {
    for (const known of CUDA_VERSIONS) {
      assert.ok(matchesCuda(virtual, { allowed: [known] }));
      assert.ok(matchesCuda(virtual, { minimum: known }));
    }
    assert.ok(!matchesCuda(virtual, { allowed: ['9.9'] }));
    assert.ok(!matchesCuda(virtual, { minimum: '99.0' }));
    assert.deepEqual(cudaVersionsOf(virtual), CUDA_VERSIONS);
  });

  test('a higher minimum never matches more GPUs', () => {
    fc.assert(
      fc.property(version, version, version, (has, one, other) => {
        const [low, high] = compareCudaVersions(one, other) <= 0 ? [one, other] : [other, one];
        if (meetsCudaRequirement(has, { minimum: high }))
          assert.ok(meetsCudaRequirement(has, { minimum: low }));
      }),
    );
  });

  test('a longer list never matches fewer GPUs', () => {
    fc.assert(
      fc.property(version, fc.array(version, { minLength: 1 }), fc.array(version), (has, list, more) => {
        if (meetsCudaRequirement(has, { allowed: list }))
          assert.ok(meetsCudaRequirement(has, { allowed: [...list, ...more] }));
      }),
    );
  });
});
