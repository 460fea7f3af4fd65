import type { ClusterView } from '../../resources/clusters/clusters.ts';
import type { Resources } from '../../resources/resources.ts';
import type { ClusterType } from '../../store/clusters.ts';
import { isoTime } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import { deletedNoCluster } from './client-sentences.ts';
import { required } from './inputs.ts';
import type { Part } from './part.ts';
import { orderOf } from './pods-input.ts';
import type { DeployPod } from './pods-input.ts';
import { showPod } from './pods.ts';

const sdl = `
  enum ClusterType { APPLICATION TRAINING SLURM RAY }
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
    "From 2 to 250"
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

type CreateInput = Omit<DeployPod, 'name' | 'gpuCount'> & {
  clusterName?: string;
  type?: ClusterType;
  podCount?: number;
  gpuCountPerPod?: number;
};

export function clusterPart({ clusters, pods, catalog }: Resources): Part {
  return {
    sdl,
    keyed: {
      User: {
        clusters: async (_args: unknown, caller) => (await clusters.list(caller)).map(show),
        cluster: async ({ input = {} }: { input?: { id?: string } }, caller) => {
          try {
            return show(await clusters.get(caller, required(input, 'id').id));
          } catch (error) {
            if (error instanceof BerthError && error.code === 'not-found') return null;
            throw error;
          }
        },
      },
      Mutation: {
        createCluster: async ({ input = {} }: { input?: CreateInput }, caller) => {
          const {
            clusterName,
            type = 'TRAINING',
            podCount,
            gpuCountPerPod = 1,
            ...order
          } = required(input, 'clusterName', 'gpuTypeId', 'podCount');
          const pod = orderOf({ ...order, name: clusterName, gpuCount: gpuCountPerPod }, false, {
            dataCenters: catalog.dataCenters(),
            jupyterPassword: ({ id }) => pods.jupyterPassword(id),
          });
          return show(await clusters.create(caller, { name: clusterName, type, podCount, pod }));
        },
        deleteCluster: async ({ input = {} }: { input?: { id?: string } }, caller) => {
          try {
            await clusters.remove(caller, required(input, 'id').id);
          } catch (error) {
            throw error instanceof BerthError && error.code === 'not-found'
              ? deletedNoCluster(input.id ?? '')
              : error;
          }
          return true;
        },
      },
    },
  };
}

function show({
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
    pods: members.map(showPod),
  };
}
