import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import type { Template } from '../records.ts';
import { BerthError } from '../../support/errors.ts';
import { checkTemplate, envFindings, templateFindings } from './template-rules.ts';
import { MAX_DISK_GB, MAX_NAME_LENGTH } from '../limits.ts';

const plain: Template = {
  id: 't',
  accountId: 'a',
  name: 'worker',
  image: 'python:3.12',
  args: 'python main.py',
  containerDisk: 10,
  volumeSize: 0,
  volumePath: '/workspace',
  ports: ['80/http'],
  portLabels: [],
  env: { A: 'b' },
  registryId: null,
  category: 'CPU',
  public: false,
  serverless: false,
  readme: '',
  startSsh: true,
  startJupyter: true,
  startScript: '',
  advancedStart: false,
  allowedCudaVersions: ['12.8'],
  config: null,
  createdAt: 1,
  updatedAt: 1,
};

const size = fc.integer({ min: 0, max: MAX_DISK_GB });
const template = fc
  .record({
    name: fc.string({ minLength: 1, maxLength: MAX_NAME_LENGTH }).filter((name) => name.trim() !== ''),
    image: fc.stringMatching(/^[a-z0-9./:@_-]{1,60}$/),
    containerDisk: size,
    volumeSize: size,
    volumePath: fc.oneof(
      fc.constant(''),
      fc.string().map((path) => `/${path}`),
    ),
    env: fc.dictionary(
      fc.string({ minLength: 1 }).filter((key) => !key.includes('=')),
      fc.string(),
    ),
    allowedCudaVersions: fc.array(
      fc.tuple(fc.nat(20), fc.nat(20)).map(([major, minor]) => `${major}.${minor}`),
      { maxLength: 3 },
    ),
    serverless: fc.boolean(),
  })
  .map(
    (fields): Template => ({ ...plain, ...fields, volumeSize: fields.serverless ? 0 : fields.volumeSize }),
  );

/** One mistake each, and a word of the finding that must name it. */
const mistakes: [Partial<Template>, RegExp][] = [
  [{ name: '' }, /^name must not be empty/],
  [{ name: '   ' }, /^name must not be empty/],
  [{ name: 'x'.repeat(MAX_NAME_LENGTH + 1) }, /^name must be at most 191/],
  [{ image: '' }, /^image must/],
  [{ image: 'two words' }, /^image must/],
  [{ image: 'x'.repeat(501) }, /^image must be at most 500 characters long, got 501$/],
  [{ image: 'line\nbreak' }, /^image must/],
  [{ containerDisk: -1 }, /^container disk .* got -1/],
  [{ containerDisk: 1.5 }, /^container disk .* got 1\.5/],
  [{ containerDisk: MAX_DISK_GB + 1 }, /^container disk/],
  [{ containerDisk: NaN }, /^container disk/],
  [{ serverless: false, volumeSize: -1 }, /^volume size .* got -1/],
  [{ serverless: true, volumeSize: 20 }, /^volume size must be 0 for a serverless template, got 20/],
  [{ volumePath: 'workspace' }, /^volume mount path must be an absolute path/],
  [{ ports: ['80'] }, /^port "80"/],
  [{ env: { '': 'x' } }, /^environment variable name ""/],
  [{ env: { 'A=B': 'x' } }, /^environment variable name "A=B"/],
  [{ args: 'echo "open' }, /quote " that is not closed/],
  [{ allowedCudaVersions: ['12'] }, /^CUDA version "12"/],
];

describe('a template', () => {
  test('within the rules has no finding', async () => {
    await checkProperty(fc.property(template, (made) => assert.deepEqual(templateFindings(made), [])));
  });

  test('with one mistake has one finding, which names it', async () => {
    await checkProperty(
      fc.property(template, fc.constantFrom(...mistakes), (made, [mistake, words]) => {
        const findings = templateFindings({ ...made, ...mistake });
        assert.equal(findings.length, 1, findings.join('\n'));
        assert.match(findings[0] ?? '', words);
      }),
    );
  });

  test('for endpoints has no volume, whatever else it says', async () => {
    await checkProperty(
      fc.property(template, size, (made, volumeSize) =>
        assert.equal(
          templateFindings({ ...made, serverless: true, volumeSize }).length,
          volumeSize === 0 ? 0 : 1,
        ),
      ),
    );
  });

  test('is refused with all findings at once, never with the values of its environment', () => {
    const refused = (): Template =>
      checkTemplate({ ...plain, name: '', ports: ['80'], env: { 'A=B': 'a secret value' } });
    assert.throws(
      refused,
      (error) =>
        error instanceof BerthError &&
        error.code === 'rule' &&
        error.details.length === 3 &&
        !error.message.includes('a secret value'),
    );
    assert.equal(checkTemplate(plain), plain);
  });

  test('with mistakes by the thousand is refused in a few lines', () => {
    const many = Array.from({ length: 50_000 }, (_, index) => `${index}`);
    const refused = (): Template =>
      checkTemplate({
        ...plain,
        ports: many,
        env: Object.fromEntries(many.map((key) => [`${key}=`, ''])),
        allowedCudaVersions: many,
      });
    assert.throws(
      refused,
      (error) => error instanceof BerthError && error.details.length === 20 && error.message.length < 5000,
    );
  });

  test('may name its variables as the prototype of objects does', () => {
    assert.deepEqual(
      envFindings(
        JSON.parse('{"constructor":"x","toString":"y","hasOwnProperty":"z"}') as Record<string, string>,
      ),
      [],
    );
  });
});
