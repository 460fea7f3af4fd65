import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { BerthError } from '../../support/errors.ts';
import { checkSecretName, checkSecretValue } from './secret-rules.ts';
import { MAX_NAME_LENGTH, MAX_SECRET_VALUE_BYTES } from '../limits.ts';

const isRule = (error: unknown): boolean => error instanceof BerthError && error.code === 'rule';

describe('the name of a secret', () => {
  test('holds letters, digits and a few marks, and starts with a letter or an underscore', async () => {
    await checkProperty(
      fc.property(
        fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_./-]{0,60}$/).filter((name) => !/^runpod/i.test(name)),
        (name) => checkSecretName(name),
      ),
    );
    await checkProperty(
      fc.property(
        fc.string({ unit: 'grapheme' }).filter((name) => !/^[A-Za-z_][A-Za-z0-9_./-]*$/.test(name)),
        (name) => assert.throws(() => checkSecretName(name), isRule),
      ),
    );
    for (const name of ['', '1a', '-a', 'a b', 'a\n', 'é', 'a}}'])
      assert.throws(() => checkSecretName(name), isRule, name);
  });

  test('does not start as the platform’s own do, in any case', () => {
    for (const name of ['RUNPOD', 'runpod_key', 'RunPod/x', 'RUNPOD_SECRET_a'])
      assert.throws(() => checkSecretName(name), isRule, name);
    checkSecretName('my_runpod');
  });

  test('has an end', () => {
    checkSecretName('a'.repeat(MAX_NAME_LENGTH));
    assert.throws(() => checkSecretName('a'.repeat(MAX_NAME_LENGTH + 1)), isRule);
  });
});

describe('the value of a secret', () => {
  test('is counted in bytes, is never empty, and is never repeated in a refusal', () => {
    checkSecretValue('x');
    checkSecretValue('x'.repeat(MAX_SECRET_VALUE_BYTES - 1));
    assert.throws(() => checkSecretValue(''), isRule);
    assert.throws(
      () => checkSecretValue('x'.repeat(MAX_SECRET_VALUE_BYTES)),
      (error) => isRule(error) && !String(error).includes('xx'),
    );
    assert.throws(() => checkSecretValue('é'.repeat(MAX_SECRET_VALUE_BYTES / 2)), isRule);
  });
});
