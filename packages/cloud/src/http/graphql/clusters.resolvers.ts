import type { ClusterView } from '../../resources/clusters/clusters.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { isoTime } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import { clusterToDeleteNotFound } from './graphql-client-errors.ts';
import { requireFields } from './graphql-input-checks.ts';
import type { GraphqlModule } from './graphql-module.ts';
import { createPodInput } from './pods.graphql.input.ts';
import type { DeployPodInput } from './pods.graphql.input.ts';
import { serializePod } from './pods.resolvers.ts';
import { type ClusterType, CLUSTER_TYPES } from '../../domain/clusters/cluster-record.ts';
import { CLUSTER_POD_COUNT } from '../../domain/limits.ts';

const sdl = `
  enum ClusterType { ${CLUSTER_TYPES.join(' ')} }
  "Several pods of one shape, with one network"
  type Cluster {
    id: String
    name: String
    type: ClusterType
    podCount: Int
    gpuCountPerPod: Int
    gpuTypeId: String
    dataCenterId: String
    templateId: String
    createdAt: DateTime
    "By rank"
    pods: [Pod]
  }
  input ClusterFilter { id: String }
  input CreateClusterInput {
    clusterName: String
    type: ClusterType
    gpuTypeId: String
    "From ${CLUSTER_POD_COUNT.minimum} to ${CLUSTER_POD_COUNT.maximum}"
    podCount: Int
    gpuCountPerPod: Int
    deployCost: Float
    imageName: String
    templateId: String
    networkVolumeId: String
    volumeInGb: Int
    volumeKey: String
    volumeMountPath: String
    throughput: Int
    allowedCudaVersions: [String]
    minCudaVersion: String
    dataCenterId: String
    startJupyter: Boolean
    startSsh: Boolean
    containerDiskInGb: Int
    dockerArgs: String
    env: [EnvironmentVariableInput]
    ports: String
  }
  input DeleteClusterInput { id: String }

  extend type User { clusters: [Cluster] cluster(input: ClusterFilter): Cluster }
  extend type Mutation {
    createCluster(input: CreateClusterInput): Cluster
    "True: it is gone, and its pods with it"
    deleteCluster(input: DeleteClusterInput): Boolean
  }
`;

type CreateClusterInput = Omit<DeployPodInput, 'name' | 'gpuCount'> & {
  clusterName?: string;
  type?: ClusterType;
  podCount?: number;
  gpuCountPerPod?: number;
};

export function clusterModule({ clusters, pods, catalog }: ResourceServices): GraphqlModule {
  return {
    sdl,
    authenticatedResolvers: {
      User: {
        clusters: async (_args: unknown, caller) => (await clusters.list(caller)).map(serializeCluster),
        cluster: async ({ input = {} }: { input?: { id?: string } }, caller) => {
          try {
            return serializeCluster(await clusters.get(caller, requireFields(input, 'id').id));
          } catch (error) {
            if (error instanceof BerthError && error.code === 'not-found') return null;
            throw error;
          }
        },
      },
      Mutation: {
        createCluster: async ({ input = {} }: { input?: CreateClusterInput }, caller) => {
          const {
            clusterName,
            type = 'TRAINING',
            podCount,
            gpuCountPerPod = 1,
            ...order
          } = requireFields(input, 'clusterName', 'gpuTypeId', 'podCount');
          const pod = createPodInput({ ...order, name: clusterName, gpuCount: gpuCountPerPod }, false, {
            dataCenters: catalog.dataCenters(),
            jupyterPassword: ({ id }) => pods.jupyterPassword(id),
          });
          return serializeCluster(await clusters.create(caller, { name: clusterName, type, podCount, pod }));
        },
        deleteCluster: async ({ input = {} }: { input?: { id?: string } }, caller) => {
          try {
            await clusters.remove(caller, requireFields(input, 'id').id);
          } catch (error) {
            throw error instanceof BerthError && error.code === 'not-found'
              ? clusterToDeleteNotFound(input.id ?? '')
              : error;
          }
          return true;
        },
      },
    },
  };
}

function serializeCluster({
  id,
  name,
  type,
  podCount,
  gpuCountPerPod,
  gpuTypeId,
  dataCenterId,
  templateId,
  createdAt,
  members,
}: ClusterView) {
  return {
    id,
    name,
    type,
    podCount,
    gpuCountPerPod,
    gpuTypeId,
    dataCenterId,
    templateId,
    createdAt: isoTime(createdAt),
    pods: members.map(serializePod),
  };
}
