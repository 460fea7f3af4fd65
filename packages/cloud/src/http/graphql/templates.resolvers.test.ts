import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startGraphqlFixture } from './graphql.fixture.ts';
import type { GraphqlFixture, GraphqlResponse } from './graphql.fixture.ts';

const ALL = `id name imageName dockerArgs containerArgs env { key value } ports portsConfig { port name }
  containerDiskInGb containerRegistryAuthId volumeInGb volumeMountPath
  readme category advancedStart startScript startSsh startJupyter isPublic isRunpod isServerless
  boundEndpointId earned runtimeInMin userId config`;
const SAVE = `mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { ${ALL} } }`;

type Shown = Record<string, unknown> & { id: string; name: string };

describe('templates', () => {
  let berth: GraphqlFixture;
  before(async () => {
    berth = await startGraphqlFixture();
  });
  after(() => berth.close());

  const save = (input: Record<string, unknown>, key?: string): Promise<GraphqlResponse> =>
    berth.ask(SAVE, { variables: { input }, ...(key !== undefined && { key }) });
  const saved = async (input: Record<string, unknown>, key?: string): Promise<Shown> => {
    const answer = await save(input, key);
    assert.deepEqual(answer.errors, []);
    return (answer.data as { saveTemplate: Shown }).saveTemplate;
  };
  const minimal = (name: string): Record<string, unknown> => ({
    name,
    imageName: 'python:3.12',
    containerDiskInGb: 10,
    volumeInGb: 0,
  });

  test('are made of four fields', async () => {
    const { id, ...rest } = await saved(minimal('small'));
    assert.match(id, /^[a-z0-9]{10}$/);
    assert.deepEqual(rest, {
      name: 'small',
      imageName: 'python:3.12',
      dockerArgs: '',
      containerArgs: '',
      env: [],
      ports: '',
      portsConfig: [],
      containerDiskInGb: 10,
      containerRegistryAuthId: null,
      volumeInGb: 0,
      volumeMountPath: '/workspace',
      readme: '',
      category: 'NVIDIA',
      advancedStart: false,
      startScript: '',
      startSsh: true,
      startJupyter: true,
      isPublic: false,
      isRunpod: false,
      isServerless: false,
      boundEndpointId: null,
      earned: 0,
      runtimeInMin: 0,
      userId: 'root',
      config: null,
    });
  });

  test('keep every field', async () => {
    const { data } = await berth.ask(
      'mutation { saveRegistryAuth(input: {name: "hub", username: "u", password: "p"}) { id } }',
    );
    const registry = (data as { saveRegistryAuth: { id: string } }).saveRegistryAuth.id;
    const fields = {
      name: 'full',
      imageName: 'team/image:1',
      dockerArgs: '{"entrypoint":["python"],"cmd":["-u","main.py"]}',
      env: [
        { key: 'A', value: '1' },
        { key: 'EMPTY', value: '' },
      ],
      ports: '8888/http,22/tcp',
      portsConfig: [{ port: '8888', name: 'Notebook' }],
      containerDiskInGb: 20,
      containerRegistryAuthId: registry,
      volumeInGb: 5,
      volumeMountPath: '/data',
      readme: '# Full',
      category: 'CPU',
      advancedStart: true,
      startScript: 'echo hello',
      startSsh: false,
      startJupyter: false,
      isPublic: false,
      isServerless: false,
      config: { any: ['thing', null, ''] },
    };
    const shown = await saved(fields);
    for (const [field, value] of Object.entries(fields)) assert.deepEqual(shown[field], value, field);
    assert.equal(shown['containerArgs'], fields.dockerArgs);
    assert.deepEqual(
      (
        await berth.ask(`query ($id: String!) { podTemplate(id: $id) { ${ALL} } }`, {
          variables: { id: shown.id },
        })
      ).data,
      { podTemplate: shown },
    );
  });

  test('that lack a field are refused with the names of what is missing', async () => {
    assert.equal(
      (await save({ name: 'x' })).message,
      'imageName, containerDiskInGb and volumeInGb are required: missing or empty',
    );
    assert.equal(
      (await save({ ...minimal('x'), imageName: '' })).message,
      'imageName is required: missing or empty',
    );
    assert.equal(
      (await save({ ...minimal('x'), volumeInGb: null })).message,
      'volumeInGb is required: missing or empty',
    );
    assert.match(
      (await berth.ask('mutation { saveTemplate { id } }')).message,
      /^name, imageName, containerDiskInGb and volumeInGb are required/,
    );
  });

  test('have names of their own in an account', async () => {
    const again = await save(minimal('small'));
    assert.equal(again.status, 200);
    assert.equal(again.data, null);
    assert.equal(again.code, 'TAKEN');
    assert.match(again.message, /a template named "small" exists already/);
    const other = await saved(minimal('small'), await berth.account('namesake'));
    assert.equal(other.name, 'small');
    const renamed = await saved(minimal('renamed'));
    assert.equal((await save({ id: renamed.id, name: 'small' })).code, 'TAKEN');
  });

  test('for serverless have no volume', async () => {
    assert.match(
      (await save({ ...minimal('worker'), isServerless: true, volumeInGb: 5 })).message,
      /volume size must be 0 for a serverless template/,
    );
    assert.equal((await saved({ ...minimal('worker'), isServerless: true }))['isServerless'], true);
    const pod = await saved({ ...minimal('pod with volume'), volumeInGb: 5 });
    assert.match((await save({ id: pod.id, isServerless: true })).message, /must be 0/);
    assert.equal((await saved({ id: pod.id, isServerless: true, volumeInGb: 0 }))['isServerless'], true);
  });

  test('keep fields that an update omits or sets to null or an empty text', async () => {
    const before = await saved({
      ...minimal('steady'),
      dockerArgs: 'python main.py',
      env: [{ key: 'A', value: '1' }],
      ports: '80/http',
      readme: 'hello',
      category: 'AMD',
    });
    assert.deepEqual(await saved({ id: before.id, containerDiskInGb: 30 }), {
      ...before,
      containerDiskInGb: 30,
    });
    const silent = {
      id: before.id,
      name: '',
      imageName: null,
      dockerArgs: '',
      ports: '',
      readme: '',
      volumeMountPath: '',
      containerRegistryAuthId: '',
      category: '',
      env: null,
      unknown: 'x',
    };
    assert.deepEqual(await saved(silent), { ...before, containerDiskInGb: 30 });
    assert.deepEqual((await saved({ id: before.id, env: [], containerDiskInGb: 0 }))['env'], []);
  });

  test('take their command under either name', async () => {
    const { id } = await saved({ ...minimal('args'), containerArgs: 'python -u "main file.py"' });
    const shown = await saved({ id, containerArgs: 'sleep 5' });
    assert.deepEqual([shown['dockerArgs'], shown['containerArgs']], ['sleep 5', 'sleep 5']);
    assert.equal(
      (await saved({ id, dockerArgs: 'sleep 6', containerArgs: 'sleep 6' }))['dockerArgs'],
      'sleep 6',
    );
    assert.match((await save({ id, dockerArgs: 'a', containerArgs: 'b' })).message, /two names of one thing/);
    assert.match((await save({ id, dockerArgs: 'echo "open' })).message, /not closed/);
  });

  test('refuse invalid values', async () => {
    assert.match(
      (await save({ ...minimal('x'), ports: '99999/http' })).message,
      /port "99999\/http" must be/,
    );
    assert.match(
      (await save({ ...minimal('x'), env: [{ value: 'no name' }] })).message,
      /env\[0\]\.key is required/,
    );
    assert.match(
      (await save({ ...minimal('x'), env: [{ key: 'A' }, { key: '', value: 'b' }] })).message,
      /env\[1\]\.key is required/,
    );
    assert.match(
      (await save({ ...minimal('x'), env: [{ key: 'A=B', value: 'c' }] })).message,
      /must not be empty or contain "="/,
    );
    assert.match(
      (await save({ ...minimal('x'), portsConfig: [{ port: '80' }] })).message,
      /name is required/,
    );
    assert.match(
      (await save({ ...minimal('x'), category: 'TPU' })).message,
      /category must be one of NVIDIA, AMD, CPU/,
    );
    assert.match(
      (await save({ ...minimal('x'), containerRegistryAuthId: 'nowhere' })).message,
      /registry "nowhere" does not exist/,
    );
    assert.match(
      (await save({ ...minimal('x'), imageName: 'a'.repeat(501) })).message,
      /at most 500 characters/,
    );
    assert.match((await save({ ...minimal('x'.repeat(192)) })).message, /at most 191 characters/);
  });

  test('that do not exist or belong to others are not found', async () => {
    const own = await saved(minimal('mine'));
    const key = await berth.account('stranger');
    const asked = await berth.ask('query ($id: String!) { podTemplate(id: $id) { id } }', {
      variables: { id: own.id },
      key,
    });
    assert.equal(asked.status, 200);
    assert.equal(asked.code, 'NOT_FOUND');
    assert.equal((await save({ id: own.id, name: 'stolen' }, key)).code, 'NOT_FOUND');
    assert.equal((await save({ id: 'nowhere', name: 'x' })).code, 'NOT_FOUND');
    assert.equal((await save({ id: 'runpod-ubuntu', name: 'x' })).code, 'NOT_FOUND');
    assert.equal(
      (await berth.ask('mutation { deleteTemplate(templateName: "mine") }', { key })).code,
      'NOT_FOUND',
    );
    assert.deepEqual((await berth.ask('{ myself { podTemplates { id } } }', { key })).data, {
      myself: { podTemplates: [] },
    });
  });

  test('are listed where they belong', async () => {
    const key = await berth.account('publisher');
    const shared = await saved({ ...minimal('shared'), isPublic: true }, key);
    berth.clock.advance(1000);
    const hidden = await saved({ ...minimal('hidden') }, key);
    const ids = async (field: string, reader?: string): Promise<string[]> => {
      const { data } = await berth.ask(
        `{ ${field} { id isRunpod } }`,
        reader === undefined ? {} : { key: reader },
      );
      return (Object.values(data ?? {})[0] as Shown[]).map(({ id }) => id);
    };
    assert.deepEqual(await ids('podTemplates(input: {isRunpod: true})'), [
      'berth-shell',
      'runpod-ubuntu',
      'berth-echo',
    ]);
    assert.deepEqual(await ids('podTemplates(input: {isRunpod: false})'), [shared.id]);
    assert.deepEqual(await ids('podTemplates'), ['berth-shell', 'runpod-ubuntu', 'berth-echo', shared.id]);
    assert.deepEqual(await ids('podTemplates(input: {isPublic: false})', key), [hidden.id]);
    assert.deepEqual((await berth.ask('{ myself { podTemplates { name } } }', { key })).data, {
      myself: { podTemplates: [{ name: 'hidden' }, { name: 'shared' }] },
    });
    assert.deepEqual((await berth.ask(`{ podTemplate(id: "${shared.id}") { name isPublic } }`)).data, {
      podTemplate: { name: 'shared', isPublic: true },
    });
  });

  test('are deleted by their name', async () => {
    await saved(minimal('short-lived'));
    const deleted = await berth.ask('mutation { deleteTemplate(templateName: "short-lived") }');
    assert.equal(deleted.text, '{"data":{"deleteTemplate":null}}');
    assert.equal(
      (await berth.ask('mutation { deleteTemplate(templateName: "short-lived") }')).message,
      'template "short-lived" not found',
    );
    assert.match((await berth.ask('mutation { deleteTemplate }')).message, /templateName is required/);
  });

  test('come with Berth, among them the one that SDKs assume', async () => {
    const answer = await berth.ask(
      '{ podTemplate(id: "runpod-ubuntu") { id name imageName isRunpod userId dockerArgs } }',
    );
    assert.deepEqual(answer.data, {
      podTemplate: {
        id: 'runpod-ubuntu',
        name: 'Ubuntu 24.04',
        imageName: 'ubuntu:24.04',
        isRunpod: true,
        userId: null,
        dockerArgs: 'sleep infinity',
      },
    });
  });
});
