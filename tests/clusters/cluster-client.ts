import assert from 'node:assert/strict';
import type { ApiClient } from '../../packages/testing/src/api-client.ts';
import { SLEEP_COMMAND } from '../../packages/testing/src/pod-client.ts';
import type { PodView } from '../../packages/testing/src/pod-client.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

export const A40 = 'NVIDIA A40';
export const COMPUTE = { gpuTypeId: A40, gpuCountPerPod: 1, podCount: 3 };

export interface ClusterView {
  id: string;
  name: string;
  type: string;
  compute: { gpuTypeId: string; gpuCountPerPod: number; podCount: number };
  dataCenterId: string;
  template?: string;
  pods: { total: number; byStatus: Record<string, number> };
  network: { cidr: string };
  primary: { podId: string; status: string };
}

export type ClusterPod = PodView & { cluster: { id: string; rank: number; role?: string; ip: string } };

type Fields = Record<string, unknown>;

export interface ClusterClient {
  /** What creates a cluster of three, with other fields where given. */
  bodyOf(more?: Fields): Fields;
  create(more?: Fields): Promise<ClusterView>;
  /** The answer to a cluster that must not be created. */
  refused(more: Fields): Promise<{ status: number; text: string }>;
  get(id: string): Promise<ClusterView>;
  membersOf(id: string): Promise<ClusterPod[]>;
  /** The cluster once all of its members run. */
  allRun(id: string, count?: number): Promise<ClusterView>;
  /** Neither a cluster nor a pod of one is left. */
  nothingIsLeft(): Promise<void>;
}

/** Clusters of one account over REST v2. The account is there once the tests run. */
export function clusterClient(owner: () => ApiClient): ClusterClient {
  const bodyOf: ClusterClient['bodyOf'] = (more = {}) => ({
    name: 'c',
    type: 'TRAINING',
    compute: COMPUTE,
    image: 'local/shell',
    cmd: SLEEP_COMMAND,
    ...more,
  });
  const get: ClusterClient['get'] = async (id) =>
    (await owner().call<ClusterView>('GET', `/v2/clusters/${id}`)).body;
  return {
    bodyOf,
    get,
    create: async (more = {}) => {
      const { status, body, text } = await owner().call<ClusterView>('POST', '/v2/clusters', bodyOf(more));
      assert.equal(status, 201, text);
      return body;
    },
    refused: (more) => owner().call('POST', '/v2/clusters', bodyOf(more)),
    membersOf: async (id) =>
      (await owner().call<{ pods: ClusterPod[] }>('GET', `/v2/clusters/${id}/pods`)).body.pods,
    allRun: (id, count = 3) =>
      waitFor('all of them run', async () => {
        const found = await get(id);
        return found.pods.byStatus['RUNNING'] === count && found;
      }),
    nothingIsLeft: async () => {
      assert.deepEqual((await owner().call<{ clusters: [] }>('GET', '/v2/clusters')).body.clusters, []);
      assert.deepEqual(
        (await owner().call<{ pods: [] }>('GET', '/v2/pods?includeClusterPods=true')).body.pods,
        [],
      );
    },
  };
}
