import { CLOUD_TYPES } from '../../domain/pods/pod-record.ts';

const DEPLOY_FIELDS = `
    name: String
    imageName: String
    templateId: String
    cloudType: CloudTypeEnum
    compliance: [Compliance]
    dataCenterId: String
    countryCode: String
    containerDiskInGb: Int
    "Kept until the pod is terminated"
    volumeInGb: Int
    volumeMountPath: String
    volumeKey: String
    networkVolumeId: String
    dockerArgs: String
    "Such as 8888/http,22/tcp"
    ports: String
    port: Port
    env: [EnvironmentVariableInput]
    containerRegistryAuthId: String
    startSsh: Boolean
    startJupyter: Boolean
    stopAfter: DateTime
    terminateAfter: DateTime
    supportPublicIp: Boolean
    gpuCount: Int
    minVcpuCount: Int
    minMemoryInGb: Int
    minDisk: Int
    minDownload: Int
    minUpload: Int
    deployCost: Float
`;
const DEPLOY_GPU_FIELDS = `${DEPLOY_FIELDS}
    gpuTypeId: String
    allowedCudaVersions: [String]
    cudaVersion: String
    minCudaVersion: String
    "US dollars for one GPU and hour that an interruptible pod pays at most"
    bidPerGpu: Float
`;

/** What the API has of pods: types, inputs, queries and mutations. `pods.resolvers.ts` resolves them. */
export const podSdl = `
  scalar Port
  enum CloudTypeEnum { ${CLOUD_TYPES.join(' ')} ALL }
  enum PodType { INTERRUPTABLE RESERVED BID BACKGROUND }
  extend enum PodStatus { CREATED RESTARTING EXITED PAUSED DEAD TERMINATED }

  extend type Pod {
    podType: PodType
    costPerHr: Float
    adjustedCostPerHr: Float
    costMultiplier: Float
    lowestBidPriceToResume: Float
    gpuPowerLimitPercent: Int
    gpus: [Gpu]
    vcpuCount: Float
    memoryInGb: Float
    containerDiskInGb: Int
    volumeInGb: Int
    volumeMountPath: String
    volumeEncrypted: Boolean
    volumeKey: String
    dockerArgs: String
    dockerId: String
    "Each as NAME=value"
    env: [String]
    port: Port
    ports: String
    locked: Boolean
    version: Int
    machineId: String
    machineType: String
    "Null until its container runs"
    runtime: PodRuntime
    latestTelemetry: PodTelemetry
    templateId: String
    containerRegistryAuthId: String
    apiKey: String
    endpoint: Endpoint
    cpuFlavorId: String
    networkVolumeId: String
    networkVolume: NetworkVolume
    clusterId: String
    clusterIp: String
    clusterIdx: Int
    clusterRole: String
    stopAfter: DateTime
    terminateAfter: DateTime
  }
  type Gpu { id: String podId: String }
  extend type PodMachineInfo {
    id: String
    podHostId: String
    gpuDisplayName: String
    location: String
    costPerHr: Float
    currentPricePerGpu: Float
    secureCloud: Boolean
    supportPublicIp: Boolean
    listed: Boolean
    machineType: String
    cpuCount: Int
  }
  type PodRuntime {
    uptimeInSeconds: Int ports: [PodRuntimePorts] gpus: [PodRuntimeGpus] container: PodRuntimeContainer
  }
  type PodRuntimePorts { ip: String isIpPublic: Boolean privatePort: Int publicPort: Int type: String }
  type PodRuntimeGpus { id: String gpuUtilPercent: Float memoryUtilPercent: Float }
  type PodRuntimeContainer { cpuPercent: Float memoryPercent: Float }
  "Shares are 0 to 1"
  type PodTelemetry {
    state: String
    time: DateTime
    cpuUtilization: Float
    memoryUtilization: Float
    averageGpuMetrics: GpuTelemetry
    individualGpuMetrics: [GpuTelemetry]
    "Unix seconds"
    lastStateTransitionTimestamp: Float
  }
  "Per cent"
  type GpuTelemetry {
    id: String percentUtilization: Float temperatureCelcius: Float memoryUtilization: Float
    powerWatts: Float
  }

  input SavingsPlanInput { planLength: String upfrontCost: Float }
  input PodFilter { podId: String }
  input PodStopInput { podId: String incrementVersion: Boolean }
  input PodResumeInput {
    podId: String
    "0 starts it without its GPUs"
    gpuCount: Int
    syncMachine: Boolean
    computeType: ComputeType
    allowedCudaVersions: [String]
  }
  input PodBidResumeInput { podId: String bidPerGpu: Float gpuCount: Int }
  input PodTerminateInput { podId: String }
  "The given fields change; a running pod is reset by it"
  input PodEditJobInput {
    podId: String
    imageName: String
    dockerArgs: String
    env: [EnvironmentVariableInput]
    port: Port
    ports: String
    containerDiskInGb: Int
    volumeInGb: Int
    volumeMountPath: String
    containerRegistryAuthId: String
  }
  "GPU types are tried in their order; with none, any will do"
  input PodFindAndDeployOnDemandInput {${DEPLOY_GPU_FIELDS}
    aiApiId: String
    computeType: ComputeType
    gpuTypeIdList: [String]
    instanceIds: [String]
    globalNetwork: Boolean
    savingsPlan: SavingsPlanInput
  }
  input PodRentInterruptableInput {${DEPLOY_GPU_FIELDS}
  }
  "instanceId is the flavour, its vCPUs and its GB of memory, such as cpu3c-2-4"
  input DeployCpuPodInput {${DEPLOY_FIELDS}
    instanceId: String
  }

  extend type Query { pod(input: PodFilter): Pod }
  extend type User { pods: [Pod] }
  extend type Mutation {
    podFindAndDeployOnDemand(input: PodFindAndDeployOnDemandInput): Pod
    podRentInterruptable(input: PodRentInterruptableInput): Pod
    deployCpuPod(input: DeployCpuPodInput): Pod
    podStop(input: PodStopInput): Pod
    podResume(input: PodResumeInput): Pod
    podBidResume(input: PodBidResumeInput): Pod
    podTerminate(input: PodTerminateInput): Void
    podEditJob(input: PodEditJobInput): Pod
  }
`;
