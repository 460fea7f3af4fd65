import type { KubernetesObject } from './client/list-watch.ts';

/** The fields of Kubernetes objects that are used here. */
export interface ObjectMetadata {
  name: string;
  uid: string;
  namespace?: string;
  resourceVersion?: string;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: { kind: string; name: string; uid: string }[];
}

export interface PodObject extends KubernetesObject {
  metadata: ObjectMetadata;
  spec: {
    nodeName?: string;
    containers: { name: string; image?: string; resources?: { requests?: Record<string, string> } }[];
  };
  status?: PodStatus;
}

export interface PodStatus {
  phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
  reason?: string;
  message?: string;
  podIP?: string;
  startTime?: string;
  conditions?: PodCondition[];
  containerStatuses?: ContainerStatus[];
}

export interface PodCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
}

export interface ContainerStatus {
  name: string;
  image?: string;
  state?: {
    waiting?: { reason?: string; message?: string };
    running?: { startedAt: string };
    terminated?: {
      exitCode: number;
      reason?: string;
      message?: string;
      startedAt?: string;
      finishedAt?: string;
    };
  };
}

export interface NodeObject extends KubernetesObject {
  metadata: ObjectMetadata;
  spec: { unschedulable?: boolean };
  status: {
    allocatable?: Record<string, string>;
    conditions?: { type: string; status: string }[];
    nodeInfo?: { architecture?: string };
  };
}

export interface EventObject extends KubernetesObject {
  involvedObject: { uid: string };
  type?: string;
  reason?: string;
  message?: string;
  lastTimestamp?: string | null;
  eventTime?: string | null;
}

export interface SecretObject extends KubernetesObject {
  metadata: ObjectMetadata;
}

export interface ClaimObject extends KubernetesObject {
  metadata: ObjectMetadata;
  spec: { resources?: { requests?: Record<string, string> } };
  status?: { phase?: string; capacity?: Record<string, string> };
}

export interface ObjectList<T> {
  metadata: { resourceVersion: string; continue?: string };
  items: T[];
}
