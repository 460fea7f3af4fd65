import type { InstanceSpec } from '../instance.ts';
import type { KubernetesClient } from './client/kubernetes-client.ts';
import { apiStatus, isConflict, isNotFound } from './client/kubernetes.errors.ts';
import type { ClusterSettings } from './kubernetes-options.ts';
import { networkPolicy } from './network-policy.ts';
import { labelValue } from './pod-labels.ts';
import type { KubernetesVolumes } from './kubernetes-volumes.ts';

export interface TenantObjectsDeps {
  client: KubernetesClient;
  namespace: string;
  installation: string;
  dataCenterId: string;
  settings: ClusterSettings;
}

/**
 * What pods need beside themselves: the namespace, the claims of their volumes, and the network policy of
 * their account.
 */
export class TenantObjects {
  readonly #deps: TenantObjectsDeps;
  /** Accounts whose policy is up to date, for the URL that it was made for. */
  readonly #policies = new Map<string, string>();
  #namespace: Promise<void> | undefined;
  /** Where pods reach Berth. */
  serverUrl = '';
  /** The port at which this server listens; those that are pods of the cluster listen at the same one. */
  listenPort: number | undefined;

  constructor(deps: TenantObjectsDeps) {
    this.#deps = deps;
  }

  /** Returns the claims of its mounts by path. */
  async prepare(
    spec: InstanceSpec,
    volumes: Pick<KubernetesVolumes, 'ensureClaim'>,
  ): Promise<ReadonlyMap<string, string>> {
    await this.ensureNamespace();
    await this.#ensurePolicy(spec);
    const claims = new Map<string, string>();
    if (this.#deps.settings.sharedFolders) return claims;
    const account = labelValue(spec.labels['account'] ?? '');
    for (const { path, volume } of spec.mounts)
      if (volume !== undefined) claims.set(path, await volumes.ensureClaim(volume, account));
    return claims;
  }

  ensureNamespace(): Promise<void> {
    return (this.#namespace ??= this.#createNamespace().catch((error: unknown) => {
      this.#namespace = undefined;
      throw error;
    }));
  }

  /** The operator may have made it, and Berth then needs no right to do so. */
  async #createNamespace(): Promise<void> {
    const { client, namespace } = this.#deps;
    try {
      await client.get(`/api/v1/namespaces/${namespace}`);
      return;
    } catch (error) {
      if (apiStatus(error) === 403) return;
      if (!isNotFound(error)) throw error;
    }
    await client
      .create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
      .catch(ignoreConflict);
  }

  async #ensurePolicy(spec: InstanceSpec): Promise<void> {
    const { client, namespace, settings } = this.#deps;
    const account = spec.labels['account'];
    if (!settings.networkPolicies || account === undefined) return;
    if (this.#policies.get(account) === this.serverUrl) return;
    const policy = networkPolicy({
      ...this.#deps,
      account,
      serverUrl: this.serverUrl,
      // A kubeconfig names the namespace of its context, a service account that of the server.
      berthNamespace: settings.kubeconfig === undefined ? await client.namespace() : undefined,
      berthPort: this.listenPort,
    });
    const path = `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`;
    try {
      await client.create(path, policy);
    } catch (error) {
      if (!isConflict(error)) throw error;
      await client.merge(`${path}/${policy.metadata.name}`, policy);
    }
    this.#policies.set(account, this.serverUrl);
  }
}

function ignoreConflict(error: unknown): void {
  if (!isConflict(error)) throw error;
}
