import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { listAuditLog, serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

interface Template {
  id: string;
  name: string;
  [field: string]: unknown;
}
interface Page {
  templates: Template[];
  pagination: { nextCursor: string | null; hasNextPage: boolean };
}

for (const kind of DATABASES) {
  describe(`templates, on ${kind}`, () => {
    const fixture = serverFixture(kind);
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });

    test('through v1: 200 with a bare object, defaults of a pod template, and a bare list', async () => {
      const { status, body } = await ann.call<Template>('POST', '/v1/templates', {
        name: 'first',
        imageName: 'python:3.12',
      });
      assert.equal(status, 200);
      assert.deepEqual(body, {
        id: body.id,
        name: 'first',
        imageName: 'python:3.12',
        category: 'NVIDIA',
        containerDiskInGb: 50,
        dockerEntrypoint: [],
        dockerStartCmd: [],
        earned: 0,
        env: {},
        isPublic: false,
        isRunpod: false,
        isServerless: false,
        ports: ['8888/http', '22/tcp'],
        readme: '',
        runtimeInMin: 0,
        volumeInGb: 20,
        volumeMountPath: '/workspace',
      });
      assert.deepEqual((await ann.call('GET', `/v1/templates/${body.id}`)).body, body);
      assert.deepEqual((await ann.call('GET', '/v1/templates')).body, [body]);
    });

    test('through v2: 201, no ports and no volume unless asked for, and a wrapped list', async () => {
      const { status, body } = await ann.call<Template>('POST', '/v2/templates', {
        name: 'second',
        image: 'python:3.12',
      });
      assert.equal(status, 201);
      assert.deepEqual(body, {
        id: body.id,
        name: 'second',
        image: 'python:3.12',
        args: '',
        cmd: [],
        entrypoint: [],
        disk: 50,
        env: {},
        ports: [],
        registry: null,
        mounts: {},
        serverless: false,
        public: false,
        category: 'NVIDIA',
        startSsh: true,
        startJupyter: true,
        allowedCudaVersions: [],
      });
      assert.deepEqual((await ann.call('GET', `/v2/templates/${body.id}`)).body, body);
      const { body: page } = await ann.call<Page>('GET', '/v2/templates');
      assert.deepEqual(page.templates[0], body);
      assert.deepEqual(page.pagination, { nextCursor: null, hasNextPage: false });
    });

    test('have a unique name, whichever interface asks', async () => {
      for (const [path, body] of [
        ['/v1/templates', { name: 'first', imageName: 'x' }],
        ['/v2/templates', { name: 'first', image: 'x' }],
      ] as const)
        assert.equal((await ann.call('POST', path, body)).status, 400);
      const { body: second } = await ann.call<Page>('GET', '/v2/templates');
      const id = second.templates.find(({ name }) => name === 'second')?.id;
      for (const path of [`/v1/templates/${id}`, `/v2/templates/${id}`])
        assert.equal((await ann.call('PATCH', path, { name: 'first' })).status, 400);
      assert.equal((await ann.call('POST', `/v1/templates/${id}/update`, { name: 'first' })).status, 400);
      assert.equal((await ann.call('PATCH', `/v2/templates/${id}`, { name: 'second' })).status, 200);
      const { body } = await ann.graphql(
        `mutation { saveTemplate(input: { name: "first", imageName: "x", containerDiskInGb: 1,
          volumeInGb: 0 }) { id } }`,
      );
      assert.ok(body.errors?.[0] !== undefined);
      const results = await Promise.all(
        Array.from({ length: 6 }, () => ann.call('POST', '/v2/templates', { name: 'raced', image: 'x' })),
      );
      assert.deepEqual(results.map(({ status }) => status).sort(), [201, 400, 400, 400, 400, 400]);
    });

    test('for endpoints have no volume', async () => {
      assert.equal(
        (
          await ann.call('POST', '/v1/templates', {
            name: 'sls',
            imageName: 'x',
            isServerless: true,
            volumeInGb: 1,
          })
        ).status,
        400,
      );
      assert.equal(
        (
          await ann.call('POST', '/v2/templates', {
            name: 'sls',
            image: 'x',
            serverless: true,
            mounts: { persistent: { size: 10, path: '/data' } },
          })
        ).status,
        400,
      );
      const { body: made } = await ann.call<Template>('POST', '/v1/templates', {
        name: 'sls',
        imageName: 'x',
        isServerless: true,
      });
      assert.deepEqual([made['volumeInGb'], made['ports']], [0, []]);
      assert.equal((await ann.call('PATCH', `/v1/templates/${made.id}`, { volumeInGb: 20 })).status, 400);
      assert.equal(
        (
          await ann.call('PATCH', `/v2/templates/${made.id}`, {
            mounts: { persistent: { size: 10, path: '/data' } },
          })
        ).status,
        400,
      );
      const { body: pod } = await ann.call<Template>('POST', '/v1/templates', {
        name: 'pod',
        imageName: 'x',
      });
      assert.equal((await ann.call('PATCH', `/v2/templates/${pod.id}`, { serverless: true })).status, 400);
      await ann.call('PATCH', `/v1/templates/${pod.id}`, { volumeInGb: 0 });
      assert.equal(
        (await ann.call<Template>('PATCH', `/v2/templates/${pod.id}`, { serverless: true })).body[
          'serverless'
        ],
        true,
      );
    });

    test('change only in the given fields, the same by PATCH and by the update of v1', async () => {
      const make = async (name: string): Promise<string> =>
        (
          await ann.call<Template>('POST', '/v1/templates', {
            name,
            imageName: 'a',
            env: { A: '1', B: '2' },
            dockerEntrypoint: ['sh', '-c'],
            dockerStartCmd: ['one two'],
            readme: 'words',
          })
        ).body.id;
      const [patched, posted] = [await make('patched'), await make('posted')];
      const change = {
        imageName: 'b',
        env: { C: '3' },
        ports: ['80/http,22/tcp'],
        containerDiskInGb: null,
        volumeInGb: null,
        dockerStartCmd: ['three'],
      };
      const {
        id: _,
        name: __,
        ...one
      } = (await ann.call<Template>('PATCH', `/v1/templates/${patched}`, change)).body;
      const {
        id: ___,
        name: ____,
        ...other
      } = (await ann.call<Template>('POST', `/v1/templates/${posted}/update`, change)).body;
      assert.deepEqual(one, other);
      assert.partialDeepStrictEqual(one, {
        imageName: 'b',
        env: { C: '3' },
        ports: ['80/http', '22/tcp'],
        containerDiskInGb: 0,
        volumeInGb: 0,
        dockerEntrypoint: ['sh', '-c'],
        dockerStartCmd: ['three'],
        readme: 'words',
      });
      assert.deepEqual(
        (await ann.call<Template>('PATCH', `/v2/templates/${patched}`, {})).body['image'],
        'b',
      );
      assert.deepEqual(
        (await ann.call<Template>('PATCH', `/v1/templates/${patched}`, {})).body['readme'],
        'words',
      );
    });

    test('say their command as text or as lists, and the two agree', async () => {
      const make = async (name: string, fields: object): Promise<Template> =>
        (await ann.call<Template>('POST', '/v2/templates', { name, image: 'x', ...fields })).body;
      assert.deepEqual((await make('text', { args: 'python -u "two words.py"' }))['cmd'], [
        'python',
        '-u',
        'two words.py',
      ]);
      const listed = await make('lists', { entrypoint: ['sh', '-c'], cmd: ["it's; here"] });
      assert.deepEqual([listed['entrypoint'], listed['cmd']], [['sh', '-c'], ["it's; here"]]);
      assert.equal(
        (await ann.call('POST', '/v2/templates', { name: 'both', image: 'x', args: 'a b', cmd: ['a', 'b'] }))
          .status,
        201,
      );
      assert.equal(
        (await ann.call('POST', '/v2/templates', { name: 'torn', image: 'x', args: 'a b', cmd: ['a'] }))
          .status,
        400,
      );
      assert.equal(
        (await ann.call('POST', '/v2/templates', { name: 'open', image: 'x', args: 'echo "a' })).status,
        400,
      );
      const { body: v1 } = await ann.call<Template>('GET', `/v1/templates/${listed.id}`);
      assert.deepEqual([v1['dockerEntrypoint'], v1['dockerStartCmd']], [['sh', '-c'], ["it's; here"]]);
      assert.equal(
        (await ann.call<Template>('PATCH', `/v2/templates/${listed.id}`, { args: '' })).body['args'],
        '',
      );
      assert.deepEqual(
        (await ann.call<Template>('PATCH', `/v2/templates/${listed.id}`, { cmd: ['only'] })).body['args'],
        'only',
      );
    });

    test('refer to registries of the account; a deleted registry leaves them', async () => {
      const { body: registry } = await ann.call<{ id: string }>('POST', '/v2/registries', {
        name: 'hub',
        username: 'u',
        password: 'p',
      });
      const { body: made } = await ann.call<Template>('POST', '/v1/templates', {
        name: 'private',
        imageName: 'x',
        containerRegistryAuthId: registry.id,
      });
      assert.equal(
        (await ann.call<Template>('GET', `/v2/templates/${made.id}`)).body['registry'],
        registry.id,
      );
      assert.equal(
        (await ann.call<Template>('PATCH', `/v1/templates/${made.id}`, { containerRegistryAuthId: '' })).body[
          'containerRegistryAuthId'
        ],
        undefined,
      );
      assert.equal(
        (await ann.call<Template>('PATCH', `/v2/templates/${made.id}`, { registry: registry.id })).body[
          'registry'
        ],
        registry.id,
      );
      assert.equal(
        (await ann.call<Template>('PATCH', `/v2/templates/${made.id}`, { registry: null })).body['registry'],
        null,
      );
      await ann.call('PATCH', `/v2/templates/${made.id}`, { registry: registry.id });
      assert.equal((await ann.call('DELETE', `/v1/containerregistryauth/${registry.id}`)).status, 204);
      assert.equal((await ann.call<Template>('GET', `/v2/templates/${made.id}`)).body['registry'], null);
      assert.equal(
        (await ann.call('PATCH', `/v2/templates/${made.id}`, { registry: registry.id })).status,
        400,
      );
    });

    test('that are public are read by everyone and changed by their owner alone', async () => {
      const { body: open } = await ann.call<Template>('POST', '/v2/templates', {
        name: 'open',
        image: 'x',
        public: true,
      });
      const bob = await fixture.createAccount('bob');
      for (const version of ['v1', 'v2']) {
        assert.equal((await bob.call('GET', `/${version}/templates/${open.id}`)).status, 200);
        assert.equal(
          (await bob.call('PATCH', `/${version}/templates/${open.id}`, { name: 'mine' })).status,
          404,
        );
        assert.equal((await bob.call('DELETE', `/${version}/templates/${open.id}`)).status, 404);
      }
      const ids = async (path: string): Promise<string[]> =>
        (await bob.call<Template[]>('GET', path)).body.map(({ id }) => id);
      assert.deepEqual(await ids('/v1/templates'), []);
      assert.deepEqual(await ids('/v1/templates?includePublicTemplates=true'), [open.id]);
      assert.ok((await ids('/v1/templates?includeRunpodTemplates=true')).includes('runpod-ubuntu'));
      const { body: community } = await bob.call<Page>('GET', '/v2/catalog/templates?source=community');
      assert.deepEqual(
        community.templates.map(({ id }) => id),
        [open.id],
      );
      await ann.call('PATCH', `/v2/templates/${open.id}`, { public: false });
      assert.equal((await bob.call('GET', `/v2/templates/${open.id}`)).status, 404);
    });

    test('that come with the installation are read-only', async () => {
      for (const client of [ann, fixture.operator]) {
        assert.equal((await client.call('GET', '/v2/templates/runpod-ubuntu')).status, 200);
        assert.equal(
          (await client.call('PATCH', '/v2/templates/runpod-ubuntu', { name: 'mine' })).status,
          404,
        );
        assert.equal((await client.call('DELETE', '/v1/templates/runpod-ubuntu')).status, 404);
      }
    });

    test('are deleted with 204, which has no body and no type, and are gone', async () => {
      for (const version of ['v1', 'v2']) {
        const { body: made } = await ann.call<Template>('POST', '/v2/templates', {
          name: `short-${version}`,
          image: 'x',
        });
        const answer = await ann.call('DELETE', `/${version}/templates/${made.id}`);
        assert.deepEqual([answer.status, answer.text, answer.headers.get('content-type')], [204, '', null]);
        assert.equal((await ann.call('DELETE', `/${version}/templates/${made.id}`)).status, 404);
        assert.equal((await ann.call('GET', `/${version}/templates/${made.id}`)).status, 404);
      }
    });

    test('in long lists come in pages, newest first, that stay true while others are added', async () => {
      const carol = await fixture.createAccount('carol');
      const made: string[] = [];
      for (let index = 0; index < 25; index += 1)
        made.unshift(
          (await carol.call<Template>('POST', '/v2/templates', { name: `t${index}`, image: 'x' })).body.id,
        );
      const all = (await carol.call<Page>('GET', '/v2/templates')).body.templates.map(({ id }) => id);
      assert.deepEqual([...all].sort(), [...made].sort());
      const seen: string[] = [];
      let cursor: string | null = '';
      while (cursor !== null) {
        const { body }: { body: Page } = await carol.call<Page>(
          'GET',
          `/v2/templates?limit=7${cursor === '' ? '' : `&cursor=${cursor}`}`,
        );
        assert.ok(body.templates.length <= 7);
        seen.push(...body.templates.map(({ id }) => id));
        cursor = body.pagination.nextCursor;
        await carol.call('POST', '/v2/templates', { name: `between-${seen.length}`, image: 'x' });
        await carol.call('DELETE', `/v2/templates/${seen.at(-1)}`);
      }
      assert.deepEqual(seen, all);
    });

    test('are not paged by a cursor of anything else', async () => {
      const { body: page } = await ann.call<Page>('GET', '/v2/templates?limit=1');
      const cursor = page.pagination.nextCursor ?? '';
      const foreign = Buffer.from(
        Buffer.from(cursor, 'base64url').toString().replace('templates', 'pods'),
      ).toString('base64url');
      for (const bad of ['x', 'bm9wZQ', foreign, `${cursor}AAAA`, cursor.slice(0, 8), '%20']) {
        const answer = await ann.call<{ errors: string[] }>('GET', `/v2/templates?cursor=${bad}`);
        assert.equal(answer.status, 422, bad);
        assert.match(answer.body.errors[0] ?? '', /^\$\.cursor:/);
      }
      for (const bad of [
        'limit=0',
        'limit=1001',
        'limit=x',
        'limit=1.5',
        'limit=',
        'limit=1&limit=2',
        'cursor=',
      ])
        assert.equal((await ann.call('GET', `/v2/templates?${bad}`)).status, 422, bad);
      assert.equal((await ann.call('GET', '/v2/templates?unknown=x&desiredStatus=RUNNING')).status, 200);
    });

    test('that are refused change nothing', async () => {
      const before = await listAuditLog(ann);
      const { body: list } = await ann.call('GET', '/v2/templates');
      const [some] = (list as unknown as Page).templates;
      for (const body of [
        { ports: ['80'] },
        { env: { 'A=B': 'x' } },
        { image: 'two words' },
        { disk: 0 },
        { name: '' },
        { args: "'" },
        { mounts: { persistent: { size: 9, path: '/x' } } },
        { mounts: { network: [] } },
        { allowedCudaVersions: ['new'] },
        { public: 'yes' },
      ]) {
        const { status } = await ann.call('PATCH', `/v2/templates/${some?.id}`, body);
        assert.ok(status === 400 || status === 422, `${JSON.stringify(body)} ${status}`);
      }
      assert.deepEqual((await ann.call('GET', '/v2/templates')).body, list);
      assert.deepEqual(await listAuditLog(ann), before);
    });
  });
}
