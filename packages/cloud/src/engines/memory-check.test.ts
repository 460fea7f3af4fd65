import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BerthError } from '../support/errors.ts';
import { checkMemory } from './memory-check.ts';

const GIGABYTE = 1024 ** 3;

function refused(memoryInGb: number, virtual: boolean, freeInGb: number): string | undefined {
  try {
    checkMemory({ memoryInGb, virtual }, 8, freeInGb * GIGABYTE);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof BerthError && error.code === 'capacity');
    return error.message;
  }
}

describe('memory', () => {
  test('can be overcommitted', () => {
    assert.equal(refused(8, false, 0.3), undefined);
  });

  test('is refused when the machine is full', () => {
    assert.match(refused(0.5, false, 0.1) ?? '', /only 102 MB of memory are free/);
  });

  test('more than the machine has is refused, except with a virtual GPU', () => {
    assert.match(refused(9, false, 8) ?? '', /needs 9 GB of memory; this machine has 8 GB/);
    assert.equal(refused(200, true, 8), undefined);
  });
});
