import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { clearedServerFixture } from '../packages/testing/src/cleared-server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const PATIENCE_MS = 60_000;

type Body = Record<string, unknown>;

/**
 * The public document says string: where nothing is set, the field is left out. The client of these tests
 * compares each answer with Berth's own document.
 */
describe('what is not set is left out in REST v1, not null', () => {
  const fixture = clearedServerFixture();
  let template: Body;
  let endpoint: Body;
  const create = async (path: string, body: Body): Promise<Body> => {
    const answer = await fixture.operator.call<Body>('POST', `/v1/${path}`, body);
    assert.ok([200, 201].includes(answer.status), answer.text);
    return answer.body;
  };
  const get = async (path: string): Promise<Body> =>
    (await fixture.operator.call<Body>('GET', `/v1/${path}`)).body;
  before(async () => {
    template = await create('templates', { name: 'echo', imageName: 'local/echo', isServerless: true });
    endpoint = await create('endpoints', {
      name: 'echo',
      templateId: template['id'],
      computeType: 'CPU',
      workersMin: 1,
      workersMax: 1,
    });
  });

  /** As the document has it: a string, never null, and not always there. */
  const assertLeftOut = (schema: string, field: string, ...bodies: (Body | undefined)[]): void => {
    const { properties, required } = fixture.contract.v1.components.schemas[schema] as {
      properties: Record<string, { type: string }>;
      required: string[];
    };
    assert.equal(properties[field]?.type, field === 'gpu' ? 'object' : 'string', `${schema}.${field}`);
    assert.ok(!required.includes(field), `${schema}.${field}`);
    for (const body of bodies) {
      assert.ok(body !== undefined);
      assert.equal(field in body, false, `${schema}.${field} is ${JSON.stringify(body[field])}`);
    }
  };

  test('of a template', async () => {
    const read = await get(`templates/${template['id']}`);
    assertLeftOut('Template', 'containerRegistryAuthId', template, read);
  });

  test('of an endpoint and its workers', async () => {
    const read = await get(`endpoints/${endpoint['id']}`);
    for (const field of ['minCudaVersion', 'networkVolumeId'])
      assertLeftOut('Endpoint', field, endpoint, read);
    assertLeftOut('Endpoint', 'templateId');
    const worker = await waitFor(
      'it has a worker',
      async () => ((await get(`endpoints/${endpoint['id']}?includeWorkers=true`))['workers'] as Body[])[0],
      PATIENCE_MS,
    );
    assertLeftOut('EndpointWorker', 'gpu', worker);
  });

  test('of a pod that has not started yet', async () => {
    const pod = await create('pods', {
      name: 'shell',
      imageName: 'local/shell',
      computeType: 'CPU',
      dockerStartCmd: ['sleep', '600'],
    });
    for (const field of ['containerRegistryAuthId', 'templateId', 'networkVolumeId', 'lastStartedAt'])
      assertLeftOut('Pod', field, pod);
  });
});
