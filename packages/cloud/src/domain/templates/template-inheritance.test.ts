import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import type { Container } from '../records.ts';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import { containerFromTemplate, mergeTemplateChange, impliedTemplate } from './template-inheritance.ts';

const env = fc.dictionary(fc.constantFrom('A', 'B', 'C', 'D'), fc.constantFrom('', '1', '2'), {
  noNullPrototype: true,
});
const container: fc.Arbitrary<Container> = fc.record(
  {
    image: fc.constantFrom('a', 'b', 'c'),
    args: fc.constantFrom('', 'run'),
    containerDisk: fc.constantFrom(5, 10),
    ports: fc.constantFrom([], ['80/http']),
    registryId: fc.constantFrom(null, 'r'),
    env,
  },
  { noNullPrototype: true },
);

describe('a container that follows a template', () => {
  test('stays as it is where the template does', async () => {
    await checkProperty(
      fc.property(container, container, (held, template) =>
        assert.deepEqual(mergeTemplateChange(held, template, template), held),
      ),
    );
  });

  test('becomes what the template becomes, where it held the same', async () => {
    await checkProperty(
      fc.property(container, container, (before, after) =>
        assert.deepEqual(mergeTemplateChange(before, before, after), after),
      ),
    );
  });

  test('takes each change of the template unless it has its own', async () => {
    await checkProperty(
      fc.property(container, container, container, (held, before, after) => {
        const followed = mergeTemplateChange(held, before, after);
        assert.equal(followed.image, held.image === before.image ? after.image : held.image);
        for (const name of ['A', 'B', 'C', 'D'])
          assert.equal(
            followed.env[name],
            held.env[name] === before.env[name] ? after.env[name] : held.env[name],
            name,
          );
      }),
    );
  });

  test('gives the same in one step or two if nothing is overridden', async () => {
    await checkProperty(
      fc.property(container, container, container, (first, second, third) =>
        assert.deepEqual(
          mergeTemplateChange(mergeTemplateChange(first, first, second), second, third),
          third,
        ),
      ),
    );
  });
});

describe('what a template gives', () => {
  test('is its container; credentials stay in their account', () => {
    const template = {
      ...impliedTemplate({ ...sampleEndpoint, registryId: 'r', env: { A: '1' } }),
      accountId: 'a',
    };
    assert.equal(containerFromTemplate(template, 'a').registryId, 'r');
    assert.equal(containerFromTemplate(template, 'b').registryId, null);
    assert.deepEqual(containerFromTemplate(template, 'b').env, { A: '1' });
  });
});
