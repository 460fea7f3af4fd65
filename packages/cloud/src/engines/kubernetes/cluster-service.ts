import type { InstanceNetwork } from '../instance.ts';
import type { KubernetesClient } from './client/kubernetes-client.ts';
import { isConflict, isNotFound } from './client/kubernetes.errors.ts';
import type { PodObject } from './kubernetes-objects.ts';
import type { ClusterSettings } from './kubernetes-options.ts';
import { CLUSTER, labelValue, ownershipLabels } from './pod-labels.ts';

const MAX_TRIES = 10;

/** The headless Service of a cluster's members. It makes their host names known. */
export function serviceName(cluster: string): string {
  return `berth-${labelValue(cluster).toLowerCase()}`;
}

/** Where the host names of a cluster's members are looked up. */
export function searchDomain(
  cluster: string,
  { namespace, clusterDomain }: Pick<ClusterSettings, 'namespace' | 'clusterDomain'>,
): string {
  return `${serviceName(cluster)}.${namespace}.svc.${clusterDomain}`;
}

export interface ClusterServiceDeps {
  client: KubernetesClient;
  settings: Pick<ClusterSettings, 'namespace'>;
  installation: string;
}

/**
 * Creates the Service of the cluster, or joins it. Each member owns it: Kubernetes deletes it after the last
 * one, also while Berth is down.
 */
export async function joinClusterService(
  { name: cluster }: InstanceNetwork,
  { metadata: { name, uid } }: PodObject,
  { client, settings, installation }: ClusterServiceDeps,
): Promise<void> {
  const path = `/api/v1/namespaces/${settings.namespace}/services`;
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name, uid }];
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: serviceName(cluster),
      labels: { ...ownershipLabels(installation), [CLUSTER]: labelValue(cluster) },
      ownerReferences,
    },
    spec: {
      clusterIP: 'None',
      // Members look for each other while they start.
      publishNotReadyAddresses: true,
      selector: { ...ownershipLabels(installation), [CLUSTER]: labelValue(cluster) },
    },
  };
  for (let tries = 1; ; tries += 1) {
    try {
      await client.create(path, service);
      return;
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
    try {
      await client.mergeLists(`${path}/${service.metadata.name}`, { metadata: { ownerReferences } });
      return;
    } catch (error) {
      // It was deleted meanwhile, with the members of before.
      if (!isNotFound(error) || tries === MAX_TRIES) throw error;
    }
  }
}
