import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { BerthError } from '../../support/errors.ts';
import { referencedSecrets, resolveSecrets } from './secret-references.ts';

const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_./-]{0,12}$/);
const blank = fc.constantFrom('', ' ', '  ', '\t');
/** Text with no reference in it. */
const plain = fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('{') && !text.includes('}'));
/** A value of the environment: plain text and references in turn. */
const pieces = fc.array(fc.tuple(plain, fc.option(fc.tuple(name, blank, blank), { nil: undefined })), {
  maxLength: 4,
});
const written = (parts: [string, [string, string, string] | undefined][]): string =>
  parts
    .map(
      ([text, reference]) =>
        text +
        (reference === undefined ? '' : `{{${reference[1]}RUNPOD_SECRET_${reference[0]}${reference[2]}}}`),
    )
    .join('');
const environment = fc.dictionary(fc.stringMatching(/^[A-Z]{1,5}$/), pieces, { maxKeys: 4 });

describe('references to secrets', () => {
  test('are found anywhere in a value, each name once', async () => {
    await checkProperty(
      fc.property(environment, (env) => {
        const expected = new Set(
          Object.values(env)
            .flat()
            .flatMap(([, reference]) => (reference === undefined ? [] : [reference[0]])),
        );
        const found = referencedSecrets(
          Object.fromEntries(Object.entries(env).map(([key, parts]) => [key, written(parts)])),
        );
        assert.deepEqual(found.sort(), [...expected].sort());
      }),
    );
  });

  test('are replaced by the values; the text around them is kept', async () => {
    // Values that look like references themselves, and like the marks that String.replace understands.
    const value = fc.oneof(
      fc.string(),
      fc.constantFrom('$&', '$1', '{{ RUNPOD_SECRET_other }}', '{{RUNPOD_SECRET_a}}'),
    );
    await checkProperty(
      fc.property(environment, fc.func(value), (env, valueOf) => {
        const values = new Map(
          Object.values(env)
            .flat()
            .flatMap(([, reference]) =>
              reference === undefined ? [] : [[reference[0], valueOf(reference[0])] as const],
            ),
        );
        const expected = Object.fromEntries(
          Object.entries(env).map(([key, parts]) => [
            key,
            parts
              .map(([text, reference]) => text + (reference === undefined ? '' : values.get(reference[0])))
              .join(''),
          ]),
        );
        assert.deepEqual(
          resolveSecrets(
            Object.fromEntries(Object.entries(env).map(([key, parts]) => [key, written(parts)])),
            values,
          ),
          expected,
        );
      }),
    );
  });

  test('to a secret that does not exist stop the start, and are named', () => {
    const env = { A: 'x {{ RUNPOD_SECRET_known }}', B: '{{ RUNPOD_SECRET_lost }}{{RUNPOD_SECRET_gone}}' };
    const refused = (error: unknown): boolean =>
      error instanceof BerthError &&
      error.code === 'rule' &&
      error.message.includes('lost, gone') &&
      !error.message.includes('the value');
    assert.throws(() => resolveSecrets(env, new Map([['known', 'the value']])), refused);
  });

  test('of another form are not changed', () => {
    const env = {
      A: '{{ RUNPOD_SECRET_ }} {{ SECRET_a }} { { RUNPOD_SECRET_a }} {{ RUNPOD_SECRET_a }',
      B: '{{ runpod_secret_a }}',
    };
    assert.deepEqual(referencedSecrets(env), []);
    assert.deepEqual(resolveSecrets(env, new Map()), env);
  });
});
