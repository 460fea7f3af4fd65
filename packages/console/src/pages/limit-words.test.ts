import assert from 'node:assert/strict';
import { test } from 'node:test';
import { amountText, parseAmount } from './limit-words.ts';

test('a limit of bytes is typed with a unit, the others without', () => {
  assert.equal(parseAmount('volumeBytes', '1.5 GB'), 1_500_000_000);
  assert.equal(parseAmount('logBytes', '200mb'), 200_000_000);
  assert.equal(parseAmount('queuedBytes', '12'), 12);
  assert.equal(parseAmount('pods', '3'), 3);
  assert.equal(parseAmount('spendPerMonth', '99.5'), 99.5);
  for (const [name, text] of [
    ['pods', '3 GB'],
    ['pods', ''],
    ['pods', '-1'],
    ['logBytes', '5 XB'],
  ] as const)
    assert.equal(parseAmount(name, text), undefined, text);
});

test('what a limit is now is shown as it would be typed', () => {
  for (const [name, text] of [
    ['volumeBytes', '1500 MB'],
    ['imageBytes', '2 TB'],
    ['logBytes', '7'],
    ['pods', '3'],
  ] as const)
    assert.equal(amountText(name, parseAmount(name, text) ?? null), text);
  assert.equal(amountText('pods', null), '');
});
