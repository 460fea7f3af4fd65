import { isMapping } from './setting-type.ts';

/** What a data center on Kubernetes may set beside the fields of all data centers. */
export interface KubernetesFields {
  kubeconfig?: string;
  context?: string;
  namespace?: string;
  clusterDomain?: string;
  /** The URL at which pods of this cluster reach Berth. */
  workerUrl?: string;
  nodeSelector?: Record<string, string>;
  tolerations?: KubernetesToleration[];
  scheduler?: string;
  queue?: string;
  priorityClass?: string;
  interruptiblePriorityClass?: string;
  cpuRequestRatio?: number;
  memoryRequestRatio?: number;
  sharedFolders?: boolean;
  storageClasses?: Record<string, string>;
  sharedAccessMode?: 'ReadWriteMany' | 'ReadWriteOnce';
  /** The image of Berth, for pods that serve the files of volumes. */
  berthImage?: string;
  networkPolicies?: boolean;
  /** Ports of pods are reached through the API server. */
  portForwarding?: boolean;
  /** Nodes that the cluster adds when a pod waits for one. */
  nodePools?: KubernetesNodePool[];
  gpuLabel?: string;
  gpuResource?: string;
  /** Seconds that a worker stays on a node that does not answer. */
  lostNodeTimeout?: number;
  /** Seconds that a pod may wait for a node. */
  scheduleTimeout?: number;
  /** Seconds until a pod must run. */
  startTimeout?: number;
}

export interface KubernetesNodePool {
  gpu: string;
  gpusPerNode: number;
  maxNodes: number;
  vcpu: number;
  memoryInGb: number;
}

export interface KubernetesToleration {
  key?: string;
  operator?: 'Exists' | 'Equal';
  value?: string;
  effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';
}

/** The name of a namespace, a class or a queue: a DNS name. */
export const KUBERNETES_NAME = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;
/** A label's name, optionally with a prefix. */
const LABEL_NAME = /^(?:[a-z0-9][a-z0-9.-]*\/)?[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const LABEL_VALUE = /^[A-Za-z0-9._-]{0,63}$/;

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
const isName = (value: unknown): boolean => typeof value === 'string' && KUBERNETES_NAME.test(value);
const isLabelName = (value: unknown): boolean => typeof value === 'string' && LABEL_NAME.test(value);
const isBoolean = (value: unknown): boolean => typeof value === 'boolean';
const isRatio = (value: unknown): boolean => typeof value === 'number' && value > 0 && value <= 1;
const isCount = (value: unknown): boolean => Number.isInteger(value) && Number(value) >= 1;
const isSeconds = (value: unknown): boolean => Number.isInteger(value) && Number(value) >= 1;
const isLabels = (value: unknown): boolean =>
  isMapping(value) &&
  Object.entries(value).every(
    ([name, content]) => LABEL_NAME.test(name) && typeof content === 'string' && LABEL_VALUE.test(content),
  );

export const kubernetesFields: Record<keyof KubernetesFields, (value: unknown) => boolean> = {
  kubeconfig: isText,
  context: isText,
  namespace: isName,
  clusterDomain: isName,
  workerUrl: (value) => typeof value === 'string' && URL.canParse(value) && /^https?:/.test(value),
  nodeSelector: isLabels,
  tolerations: (value) => Array.isArray(value) && value.every(isToleration),
  scheduler: isName,
  queue: isName,
  priorityClass: isName,
  interruptiblePriorityClass: isName,
  cpuRequestRatio: isRatio,
  memoryRequestRatio: isRatio,
  sharedFolders: isBoolean,
  storageClasses: (value) => isMapping(value) && Object.values(value).every(isName),
  sharedAccessMode: (value) => value === 'ReadWriteMany' || value === 'ReadWriteOnce',
  berthImage: isText,
  networkPolicies: isBoolean,
  portForwarding: isBoolean,
  nodePools: (value) => Array.isArray(value) && value.every(isNodePool),
  gpuLabel: isLabelName,
  gpuResource: isLabelName,
  lostNodeTimeout: isSeconds,
  scheduleTimeout: isSeconds,
  startTimeout: isSeconds,
};

const tolerationFields: Record<keyof KubernetesToleration, (value: unknown) => boolean> = {
  key: isLabelName,
  operator: (value) => value === 'Exists' || value === 'Equal',
  value: (value) => typeof value === 'string' && LABEL_VALUE.test(value),
  effect: (value) => ['NoSchedule', 'PreferNoSchedule', 'NoExecute'].includes(String(value)),
};

const nodePoolFields: Record<keyof KubernetesNodePool, (value: unknown) => boolean> = {
  gpu: isText,
  gpusPerNode: isCount,
  maxNodes: isCount,
  vcpu: isCount,
  memoryInGb: isCount,
};

function isNodePool(value: unknown): boolean {
  return (
    isMapping(value) &&
    Object.keys(value).every((field) => Object.hasOwn(nodePoolFields, field)) &&
    Object.entries(nodePoolFields).every(([field, isValid]) => isValid(value[field]))
  );
}

function isToleration(value: unknown): boolean {
  return (
    isMapping(value) &&
    Object.entries(value).every(
      ([field, content]) =>
        Object.hasOwn(tolerationFields, field) &&
        tolerationFields[field as keyof KubernetesToleration](content),
    )
  );
}
