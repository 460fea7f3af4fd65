import assert from 'node:assert/strict';
import type { TestAccount } from './story.ts';

/** An endpoint as any of the interfaces shows it. */
export interface Endpoint {
  id: string;
  name: string;
  [field: string]: unknown;
}
export interface Page {
  endpoints: Endpoint[];
  pagination: { nextCursor: string | null; hasNextPage: boolean };
}

export const A40 = 'NVIDIA A40';
export const A6000 = 'NVIDIA RTX A6000';
export const RTX_4090 = 'NVIDIA GeForce RTX 4090';
export const delayed = { type: 'QUEUE_DELAY', queueDelay: 4 };
export const counted = { type: 'REQUEST_COUNT', requestCount: 2 };
/** What v2 asks for at least, on a CPU. */
export const small = {
  name: 'small',
  type: 'QUEUE',
  image: 'local/echo',
  scaling: delayed,
  cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
};
export const onGpu = {
  name: 'gpu',
  type: 'QUEUE',
  image: 'local/echo',
  scaling: delayed,
  gpu: { pools: ['ADA_24'] },
};

/** Everything that GraphQL tells of an endpoint. */
const FIELDS = `id name aiKey userId type version createdAt templateId computeType gpuIds gpuCount instanceIds allowedCudaVersions minCudaVersion locations compliance networkVolumeId
  networkVolume { id dataCenterId } networkVolumeIds { networkVolumeId dataCenterId } env { key value } idleTimeout executionTimeoutMs scalerType scalerValue workersMin workersMax workersStandby
  workersPFBTarget flashBootType modelReferences template { id imageName isServerless env { key value } }`;

/** Each way to make the endpoints of an account, and to see them. */
export interface Endpoints {
  /** The template that v1 makes endpoints of where a test names none. */
  base(): Promise<string>;
  template(name: string, fields?: object): Promise<string>;
  volume(): Promise<string>;
  v1(fields?: object): Promise<Endpoint>;
  v2(fields?: object): Promise<Endpoint>;
  /** Made or changed through GraphQL. */
  save(input: object): Promise<Endpoint>;
  /** Why GraphQL does not save this. */
  refusal(input: object): Promise<string>;
  inV1(id: string): Promise<Endpoint>;
  inV2(id: string): Promise<Endpoint>;
  inGraphql(id: string): Promise<Endpoint | null>;
}

/** The account and the template are there once the tests run. */
export function endpointsOf(owner: () => { ann: TestAccount; templateId: string }): Endpoints {
  const template: Endpoints['template'] = async (name, fields = {}) =>
    (
      await owner().ann.call<Endpoint>('POST', '/v1/templates', {
        name,
        imageName: 'local/echo',
        isServerless: true,
        ...fields,
      })
    ).body.id;
  return {
    base: () =>
      template('base', {
        env: { A: '1', B: '2' },
        dockerStartCmd: ['run', 'it'],
        ports: ['80/http'],
        containerDiskInGb: 7,
      }),
    template,
    volume: async () =>
      (
        await owner().ann.call<Endpoint>('POST', '/v2/network-volumes', {
          name: 'data',
          size: 10,
          dataCenter: 'LOCAL-1',
        })
      ).body.id,
    v1: async (fields = {}) => {
      const { ann, templateId } = owner();
      const { status, body } = await ann.call<Endpoint>('POST', '/v1/endpoints', { templateId, ...fields });
      assert.equal(status, 200, JSON.stringify(body));
      return body;
    },
    v2: async (fields = {}) => {
      const { status, body } = await owner().ann.call<Endpoint>('POST', '/v2/serverless', {
        ...small,
        ...fields,
      });
      assert.equal(status, 201, JSON.stringify(body));
      return body;
    },
    save: async (input) => {
      const { body } = await owner().ann.graphql<{ saveEndpoint: Endpoint }>(
        `mutation ($input: EndpointInput) { saveEndpoint(input: $input) { ${FIELDS} } }`,
        { input },
      );
      assert.ok(body.data !== undefined && body.errors === undefined, JSON.stringify(body.errors));
      return body.data.saveEndpoint;
    },
    refusal: async (input) => {
      const { status, body } = await owner().ann.graphql(
        `mutation ($input: EndpointInput) { saveEndpoint(input: $input) { id } }`,
        { input },
      );
      assert.equal(status, 200);
      return body.errors?.[0]?.message ?? 'accepted';
    },
    inV1: async (id) => (await owner().ann.call<Endpoint>('GET', `/v1/endpoints/${id}`)).body,
    inV2: async (id) => (await owner().ann.call<Endpoint>('GET', `/v2/serverless/${id}`)).body,
    inGraphql: async (id) => {
      const { body } = await owner().ann.graphql<{ myself: { endpoint: Endpoint | null } }>(
        `query ($id: String) { myself { endpoint(id: $id) { ${FIELDS} } } }`,
        { id },
      );
      assert.ok(body.data !== undefined, JSON.stringify(body.errors));
      return body.data.myself.endpoint;
    },
  };
}
