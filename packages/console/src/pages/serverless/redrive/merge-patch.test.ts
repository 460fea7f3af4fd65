import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyPatch, commonMembers, patchBetween } from './merge-patch.ts';

const FIRST = { model: 'a', seed: 1, size: { width: 512, height: 512 }, tags: ['x'] };
const SECOND = { model: 'a', seed: 2, size: { width: 512, height: 256 }, tags: ['x'] };

test('common is what all inputs have, also inside', () => {
  assert.deepEqual(commonMembers([FIRST, SECOND]), { model: 'a', size: { width: 512 }, tags: ['x'] });
  assert.deepEqual(commonMembers([FIRST]), FIRST);
  assert.deepEqual(commonMembers([FIRST, { other: 1 }]), {});
});

test('what was edited in the common part becomes a patch, which keeps the rest of each input', () => {
  const patch = patchBetween(commonMembers([FIRST, SECOND]), {
    model: 'b',
    size: { width: 256 },
    seed: null,
    steps: 4,
  });
  assert.deepEqual(patch, { tags: null, model: 'b', size: { width: 256 }, seed: null, steps: 4 });
  assert.deepEqual(applyPatch(SECOND, patch), { model: 'b', size: { width: 256, height: 256 }, steps: 4 });
  assert.deepEqual(patchBetween(FIRST, FIRST), {});
});

test('an object takes the place of what is none, without its nulls', () => {
  assert.deepEqual(applyPatch({ a: 'text' }, { a: { b: 1, c: null } }), { a: { b: 1 } });
});
