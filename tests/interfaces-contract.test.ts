import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import type { OpenApiDocument } from '../packages/cloud/src/http/rest/openapi.ts';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import {
  GRAPHQL_ONLY,
  GRAPHQL_TEMPLATE,
  graphqlTemplate,
  template,
  v1Template,
  v2Template,
} from './interfaces/template-samples.ts';
import type { Template } from './interfaces/template-samples.ts';

const sorted = (document: OpenApiDocument, schema: string): string[] =>
  Object.keys((document.components.schemas[schema] as { properties: object }).properties).sort();

/** Streams that go on until their reader leaves. */
const ENDLESS = new Set(['/v2/events']);

for (const kind of DATABASES) {
  describe(`the contract, on ${kind}`, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let ann: TestAccount;
    let registry: string;
    before(async () => {
      ann = await fixture.createAccount('ann');
      registry = (
        await ann.call<{ id: string }>('POST', '/v2/registries', {
          name: 'hub',
          username: 'u',
          password: 'p',
        })
      ).body.id;
    });

    const ask = async <T>(document: string, variables?: Record<string, unknown>): Promise<T> => {
      const { body, text } = await ann.graphql<T>(document, variables);
      assert.equal(body.errors, undefined, text);
      return body.data as T;
    };
    const save = async (input: object): Promise<string> =>
      (
        await ask<{ saveTemplate: { id: string } }>(
          'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }',
          { input },
        )
      ).saveTemplate.id;
    /** Every interface shows the same template. */
    const shown = async (id: string, expected: Template, only: object = {}): Promise<void> => {
      assert.partialDeepStrictEqual((await ann.call('GET', `/v1/templates/${id}`)).body, {
        id,
        ...v1Template(expected),
      });
      assert.partialDeepStrictEqual((await ann.call('GET', `/v2/templates/${id}`)).body, {
        id,
        ...v2Template(expected),
      });
      const { podTemplate } = await ask<{ podTemplate: object }>(
        `{ podTemplate(id: "${id}") { ${GRAPHQL_TEMPLATE} } }`,
      );
      assert.partialDeepStrictEqual(podTemplate, { id, ...graphqlTemplate(expected), ...only });
      const lists = await Promise.all([
        ann.call<{ id: string }[]>('GET', '/v1/templates').then(({ body }) => body),
        ann.call<{ templates: { id: string }[] }>('GET', '/v2/templates').then(({ body }) => body.templates),
        ask<{ myself: { podTemplates: { id: string }[] } }>(
          `{ myself { podTemplates { ${GRAPHQL_TEMPLATE} } } }`,
        ).then(({ myself }) => myself.podTemplates),
      ]);
      for (const [index, view] of [v1Template, v2Template, graphqlTemplate].entries())
        assert.partialDeepStrictEqual(
          lists[index]?.find((item) => item.id === id),
          view(expected),
        );
    };

    test('the samples below say everything that the interfaces accept', () => {
      const { v1, v2 } = fixture.contract;
      const sample = template('x', 'y');
      assert.deepEqual(sorted(v1, 'TemplateCreateInput'), Object.keys(v1Template(sample)).sort());
      assert.deepEqual(sorted(v2, 'CreateTemplate'), Object.keys(v2Template(sample)).sort());
      assert.deepEqual(sorted(v1, 'NetworkVolumeCreateInput'), ['dataCenterId', 'name', 'size']);
      assert.deepEqual(sorted(v2, 'CreateNetworkVolume'), ['dataCenter', 'name', 'size', 'type']);
      assert.deepEqual(sorted(v2, 'CreateSecret'), ['description', 'name', 'value']);
      assert.deepEqual(sorted(v2, 'CreateApiKey'), ['access', 'endpoints', 'expiresAt', 'name', 'scopes']);
    });

    test('a template made in v1 is the same everywhere; what v1 cannot say has its default', async () => {
      const made = template('from v1', registry);
      const { body } = await ann.call<{ id: string }>('POST', '/v1/templates', v1Template(made));
      await shown(body.id, { ...made, startSsh: true, startJupyter: true, cudaVersions: [] });
    });

    test('a template made in v2 is the same everywhere', async () => {
      const made = template('from v2', registry);
      const { body } = await ann.call<{ id: string }>('POST', '/v2/templates', v2Template(made));
      await shown(body.id, { ...made, readme: '' });
    });

    test('a template made in GraphQL is the same everywhere', async () => {
      const made = template('from GraphQL', registry);
      await shown(
        await save({ ...graphqlTemplate(made), ...GRAPHQL_ONLY }),
        { ...made, cudaVersions: [] },
        GRAPHQL_ONLY,
      );
    });

    test('a template changed by each interface in turn keeps the changes of the others', async () => {
      const made = template('changing', registry);
      const id = await save({ ...graphqlTemplate(made), ...GRAPHQL_ONLY });
      await ann.call('PATCH', `/v2/templates/${id}`, {
        allowedCudaVersions: made.cudaVersions,
        cmd: ['second'],
        disk: 5,
      });
      const second = { ...made, cmd: ['second'], disk: 5 };
      await shown(id, second, GRAPHQL_ONLY);
      await ann.call('PATCH', `/v1/templates/${id}`, {
        name: 'changed',
        dockerEntrypoint: ['env'],
        readme: 'shorter',
        volumeMountPath: '/other',
      });
      const third = {
        ...second,
        name: 'changed',
        entrypoint: ['env'],
        readme: 'shorter',
        volume: { ...second.volume, path: '/other' },
      };
      await shown(id, third, GRAPHQL_ONLY);
      await save({ id, imageName: 'other:v2', env: [{ key: 'ONLY', value: 'this' }], startSsh: true });
      await shown(id, { ...third, image: 'other:v2', env: { ONLY: 'this' }, startSsh: true }, GRAPHQL_ONLY);
      await ann.call('POST', `/v1/templates/${id}/update`, { isPublic: false, ports: ['1/tcp'] });
      await shown(
        id,
        {
          ...third,
          image: 'other:v2',
          env: { ONLY: 'this' },
          startSsh: true,
          public: false,
          ports: ['1/tcp'],
        },
        GRAPHQL_ONLY,
      );
    });

    test('a volume is the same in every interface, whichever created and changed it', async () => {
      const seen = async (id: string, name: string, size: number, type: string): Promise<void> => {
        assert.deepEqual((await ann.call('GET', `/v1/networkvolumes/${id}`)).body, {
          id,
          name,
          size,
          dataCenterId: 'LOCAL-1',
        });
        assert.deepEqual((await ann.call('GET', `/v2/network-volumes/${id}`)).body, {
          id,
          name,
          size,
          dataCenter: 'LOCAL-1',
          type,
          used: 0,
        });
        const { myself } = await ask<{ myself: { networkVolumes: { id: string }[] } }>(
          '{ myself { networkVolumes { id name size dataCenterId type dataCenter { id } } } }',
        );
        assert.deepEqual(
          myself.networkVolumes.find((volume) => volume.id === id),
          { id, name, size, dataCenterId: 'LOCAL-1', type, dataCenter: { id: 'LOCAL-1' } },
        );
      };
      const one = (
        await ann.call<{ id: string }>('POST', '/v1/networkvolumes', {
          name: 'ünï ☃',
          size: 11,
          dataCenterId: 'LOCAL-1',
        })
      ).body.id;
      await seen(one, 'ünï ☃', 11, 'STANDARD');
      const two = (
        await ann.call<{ id: string }>('POST', '/v2/network-volumes', {
          name: 'two',
          size: 12,
          dataCenter: 'LOCAL-1',
          type: 'HIGH_PERFORMANCE',
        })
      ).body.id;
      await seen(two, 'two', 12, 'HIGH_PERFORMANCE');
      const { createNetworkVolume } = await ask<{ createNetworkVolume: { id: string } }>(
        `mutation { createNetworkVolume(input: { name: "three", size: 13, dataCenterId: "LOCAL-1",
          type: "HIGH_PERFORMANCE" }) { id } }`,
      );
      await seen(createNetworkVolume.id, 'three', 13, 'HIGH_PERFORMANCE');
      await ann.call('PATCH', `/v2/network-volumes/${one}`, { size: 20 });
      await ann.call('PATCH', `/v1/networkvolumes/${one}`, { name: 'renamed' });
      await ask(`mutation { updateNetworkVolume(input: { id: "${one}", size: 30 }) { id } }`);
      await seen(one, 'renamed', 30, 'STANDARD');
    });

    test('a registry, a delegation and a secret are the same everywhere', async () => {
      const { saveRegistryAuth } = await ask<{ saveRegistryAuth: { id: string } }>(
        'mutation { saveRegistryAuth(input: { name: "ghcr ☃", username: "u", password: "p" }) { id } }',
      );
      const named = { id: saveRegistryAuth.id, name: 'ghcr ☃' };
      assert.deepEqual((await ann.call('GET', `/v1/containerregistryauth/${named.id}`)).body, named);
      assert.deepEqual((await ann.call('GET', `/v2/registries/${named.id}`)).body, named);
      const { myself } = await ask<{ myself: { containerRegistryCreds: object[] } }>(
        '{ myself { containerRegistryCreds { id name } } }',
      );
      assert.deepEqual(myself.containerRegistryCreds.at(-1), named);

      const { body: secret } = await ann.call<{ id: string; createdAt: string; valueLastUpdatedAt: string }>(
        'POST',
        '/v2/account/secrets',
        { name: 'token', value: 'v', description: 'ünï' },
      );
      const { secret: asked } = await ask<{ secret: object }>(
        `{ secret(id: "${secret.id}") { id name description createdAt lastUpdatedAt } }`,
      );
      assert.deepEqual(asked, {
        id: secret.id,
        name: 'token',
        description: 'ünï',
        createdAt: secret.createdAt,
        lastUpdatedAt: secret.valueLastUpdatedAt,
      });
      await ask(
        `mutation { secretDescriptionUpdate(input: { id: "${secret.id}", description: "other" }) { id } }`,
      );
      assert.equal((await ann.call('GET', `/v2/account/secrets/${secret.id}`)).body['description'], 'other');
    });

    test('a key is the same everywhere', async () => {
      const expiresAt = '2099-01-02T03:04:05.678Z';
      const { body: made } = await ann.call<{ id: string }>('POST', '/v2/account/api-keys', {
        name: 'narrow',
        access: 'RESTRICTED',
        scopes: { rest: 'READ', graphql: 'WRITE', serverless: 'WRITE' },
        endpoints: ['e1', 'e2'],
        expiresAt,
      });
      const inRest = async (id: string): Promise<object | undefined> =>
        (await ann.call<{ apiKeys: { id: string }[] }>('GET', '/v2/account/api-keys')).body.apiKeys.find(
          (key) => key.id === id,
        );
      assert.partialDeepStrictEqual(await inRest(made.id), {
        name: 'narrow',
        access: 'RESTRICTED',
        scopes: { rest: 'READ', graphql: 'WRITE', serverless: 'WRITE' },
        endpoints: ['e1', 'e2'],
        expiresAt,
        enabled: true,
        lastUsedAt: null,
      });
      const { myself } = await ask<{ myself: { apiKeys: { id: string; permissions: string }[] } }>(
        '{ myself { apiKeys { id name permissions enabled expiresAt } } }',
      );
      const shownKey = myself.apiKeys.find((key) => key.id === made.id);
      assert.partialDeepStrictEqual(shownKey, { name: 'narrow', enabled: true, expiresAt });
      const permissions = shownKey?.permissions ?? '';
      assert.partialDeepStrictEqual(JSON.parse(permissions), {
        rest: 'read',
        graphql: 'write',
        serverless: 'write',
        endpoints: ['e1', 'e2'],
      });
      const { createApiKey } = await ask<{ createApiKey: { id: string } }>(
        'mutation ($input: CreateApiKeyInput) { createApiKey(input: $input) { id } }',
        { input: { name: 'copied', permissions, expiresAt } },
      );
      assert.partialDeepStrictEqual(await inRest(createApiKey.id), {
        name: 'copied',
        access: 'RESTRICTED',
        scopes: { rest: 'READ', graphql: 'WRITE', serverless: 'WRITE' },
        endpoints: ['e1', 'e2'],
        expiresAt,
      });
    });

    test('every documented operation exists: none answers that there is no such path or method', async () => {
      for (const [prefix, document] of [
        ['/v1', fixture.contract.v1],
        ['', fixture.contract.v2],
      ] as const) {
        for (const [pattern, operations] of Object.entries(document.paths)) {
          for (const method of Object.keys(operations)) {
            const { status, text } = await fixture.operator.call(
              method.toUpperCase(),
              prefix +
                pattern.replaceAll(/\{\w+\}/g, 'some-id') +
                (ENDLESS.has(pattern) ? '?follow=false' : ''),
              method === 'get' || method === 'delete' ? undefined : {},
            );
            assert.ok(status !== 405 && !text.includes('no such address'), `${method} ${pattern}`);
          }
        }
      }
    });

    test('the documents are valid, and a linter finds nothing to improve', async () => {
      for (const document of [fixture.contract.v1, fixture.contract.v2]) {
        const problems = await lintFromString({
          source: JSON.stringify(document),
          absoluteRef: 'openapi.json',
          config: await createConfig({ extends: ['recommended'] }),
        });
        assert.deepEqual(
          problems
            // The job API is at /v2/{endpointId}, beside the resources: no endpoint has the name of one as
            // its id.
            .filter(
              ({ ruleId, message }) => ruleId !== 'no-ambiguous-paths' || !message.includes('{endpointId}'),
            )
            .map(
              ({ severity, ruleId, location, message }) =>
                `${severity} ${ruleId} ${location[0]?.pointer}: ${message}`,
            ),
          [],
        );
      }
      assert.equal(fixture.contract.v1.info.version, '0.1.0');
    });

    test('the documents and their pages are open to everyone', async () => {
      for (const version of ['v1', 'v2']) {
        const document = await fixture.client(undefined).call('GET', `/${version}/openapi.json`);
        assert.equal(document.headers.get('content-type'), 'application/json; charset=utf-8');
        const page = await fixture.client(undefined).call('GET', `/${version}/docs`);
        assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
        assert.match(page.text, /^<!doctype html>[^]*<\/html>\s*$/i);
        assert.ok(document.text.includes('createTemplate') && document.text.includes('Create a template'));
        assert.doesNotMatch(page.text, /<script[^>]+src="(?!docs\/)|https?:\/\//);
        assert.match(
          page.headers.get('content-security-policy') ?? '',
          /^default-src 'none'; script-src 'self';.*connect-src 'self'/,
        );
        const script = await fixture.client(undefined).call('GET', `/${version}/docs/scalar.js`);
        assert.equal(script.headers.get('content-type'), 'text/javascript; charset=utf-8');
        assert.match(script.text, /createApiReference/);
      }
    });

    test('every answer names its request, and no two share a name', async () => {
      const paths = ['/v1/templates', '/v2/templates', '/v2/unknown', '/graphql', '/healthz', '/nothing'];
      const names = await Promise.all(
        paths.map(async (path) => (await ann.call('GET', path)).headers.get('x-request-id')),
      );
      assert.equal(new Set(names).size, paths.length);
      assert.ok(names.every((name) => name !== null && name !== ''));
    });
  });
}
