import assert from 'node:assert/strict';
import type { TestAccount } from './server-fixture.ts';

/** An endpoint as any of the interfaces shows it. */
export interface EndpointView {
  id: string;
  name: string;
  [field: string]: unknown;
}
export interface EndpointPage {
  endpoints: EndpointView[];
  pagination: { nextCursor: string | null; hasNextPage: boolean };
}

export const A40 = 'NVIDIA A40';
export const A6000 = 'NVIDIA RTX A6000';
export const RTX_4090 = 'NVIDIA GeForce RTX 4090';
export const QUEUE_DELAY_SCALING = { type: 'QUEUE_DELAY', queueDelay: 4 };
export const REQUEST_COUNT_SCALING = { type: 'REQUEST_COUNT', requestCount: 2 };
/** What v2 asks for at least, on a CPU. */
export const CPU_ENDPOINT = {
  name: 'small',
  type: 'QUEUE',
  image: 'local/echo',
  scaling: QUEUE_DELAY_SCALING,
  cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
};
export const GPU_ENDPOINT = {
  name: 'gpu',
  type: 'QUEUE',
  image: 'local/echo',
  scaling: QUEUE_DELAY_SCALING,
  gpu: { pools: ['ADA_24'] },
};

/** All fields of an endpoint in GraphQL. */
const FIELDS = `id name aiKey userId type version createdAt templateId computeType gpuIds gpuCount
  instanceIds allowedCudaVersions minCudaVersion locations compliance networkVolumeId
  networkVolume { id dataCenterId } networkVolumeIds { networkVolumeId dataCenterId } env { key value }
  idleTimeout executionTimeoutMs scalerType scalerValue workersMin workersMax workersStandby
  workersPFBTarget flashBootType modelReferences template { id imageName isServerless env { key value } }`;

/** Each way to make the endpoints of an account, and to see them. */
export interface EndpointInterfaces {
  /** The template that v1 makes endpoints of where a test names none. */
  createBaseTemplate(): Promise<string>;
  createTemplate(name: string, fields?: object): Promise<string>;
  createVolume(): Promise<string>;
  createInV1(fields?: object): Promise<EndpointView>;
  createInV2(fields?: object): Promise<EndpointView>;
  /** Made or changed through GraphQL. */
  saveInGraphql(input: object): Promise<EndpointView>;
  /** Why GraphQL does not save this. */
  graphqlRefusal(input: object): Promise<string>;
  getFromV1(id: string): Promise<EndpointView>;
  getFromV2(id: string): Promise<EndpointView>;
  getFromGraphql(id: string): Promise<EndpointView | null>;
}

/** The account and the template are there once the tests run. */
export function endpointInterfaces(
  owner: () => { ann: TestAccount; templateId: string },
): EndpointInterfaces {
  const template: EndpointInterfaces['createTemplate'] = async (name, fields = {}) =>
    (
      await owner().ann.call<EndpointView>('POST', '/v1/templates', {
        name,
        imageName: 'local/echo',
        isServerless: true,
        ...fields,
      })
    ).body.id;
  return {
    createBaseTemplate: () =>
      template('base', {
        env: { A: '1', B: '2' },
        dockerStartCmd: ['run', 'it'],
        ports: ['80/http'],
        containerDiskInGb: 7,
      }),
    createTemplate: template,
    createVolume: async () =>
      (
        await owner().ann.call<EndpointView>('POST', '/v2/network-volumes', {
          name: 'data',
          size: 10,
          dataCenter: 'LOCAL-1',
        })
      ).body.id,
    createInV1: async (fields = {}) => {
      const { ann, templateId } = owner();
      const { status, body } = await ann.call<EndpointView>('POST', '/v1/endpoints', {
        templateId,
        ...fields,
      });
      assert.equal(status, 200, JSON.stringify(body));
      return body;
    },
    createInV2: async (fields = {}) => {
      const { status, body } = await owner().ann.call<EndpointView>('POST', '/v2/serverless', {
        ...CPU_ENDPOINT,
        ...fields,
      });
      assert.equal(status, 201, JSON.stringify(body));
      return body;
    },
    saveInGraphql: async (input) => {
      const { body } = await owner().ann.graphql<{ saveEndpoint: EndpointView }>(
        `mutation ($input: EndpointInput) { saveEndpoint(input: $input) { ${FIELDS} } }`,
        { input },
      );
      assert.ok(body.data !== undefined && body.errors === undefined, JSON.stringify(body.errors));
      return body.data.saveEndpoint;
    },
    graphqlRefusal: async (input) => {
      const { status, body } = await owner().ann.graphql(
        `mutation ($input: EndpointInput) { saveEndpoint(input: $input) { id } }`,
        { input },
      );
      assert.equal(status, 200);
      return body.errors?.[0]?.message ?? 'accepted';
    },
    getFromV1: async (id) => (await owner().ann.call<EndpointView>('GET', `/v1/endpoints/${id}`)).body,
    getFromV2: async (id) => (await owner().ann.call<EndpointView>('GET', `/v2/serverless/${id}`)).body,
    getFromGraphql: async (id) => {
      const { body } = await owner().ann.graphql<{ myself: { endpoint: EndpointView | null } }>(
        `query ($id: String) { myself { endpoint(id: $id) { ${FIELDS} } } }`,
        { id },
      );
      assert.ok(body.data !== undefined, JSON.stringify(body.errors));
      return body.data.myself.endpoint;
    },
  };
}
