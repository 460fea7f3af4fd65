import type { InstanceSpec } from '../instance.ts';
import type { KubernetesClient } from './client/kubernetes-client.ts';
import { apiStatus, isConflict, isNotFound } from './client/kubernetes.errors.ts';
import type { ClusterSettings } from './kubernetes-options.ts';
import { networkPolicy } from './network-policy.ts';
import { labelValue } from './pod-labels.ts';
import { volumeClaim } from './volume-claims.ts';

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

  constructor(deps: TenantObjectsDeps) {
    this.#deps = deps;
  }

  /** Returns the claims of its mounts by path. */
  async prepare(spec: InstanceSpec): Promise<ReadonlyMap<string, string>> {
    await (this.#namespace ??= this.#ensureNamespace().catch((error: unknown) => {
      this.#namespace = undefined;
      throw error;
    }));
    await this.#ensurePolicy(spec);
    return this.#ensureClaims(spec);
  }

  /** The operator may have made it, and Berth then needs no right to do so. */
  async #ensureNamespace(): Promise<void> {
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
    const policy = networkPolicy({ ...this.#deps, account, serverUrl: this.serverUrl });
    const path = `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`;
    try {
      await client.create(path, policy);
    } catch (error) {
      if (!isConflict(error)) throw error;
      await client.merge(`${path}/${policy.metadata.name}`, policy);
    }
    this.#policies.set(account, this.serverUrl);
  }

  async #ensureClaims(spec: InstanceSpec): Promise<Map<string, string>> {
    const { client, namespace, settings } = this.#deps;
    const claims = new Map<string, string>();
    if (settings.sharedFolders) return claims;
    for (const { path, volume } of spec.mounts) {
      if (volume === undefined) continue;
      const claim = volumeClaim(volume, this.#deps, labelValue(spec.labels['account'] ?? ''));
      await client
        .create(`/api/v1/namespaces/${namespace}/persistentvolumeclaims`, claim)
        .catch(ignoreConflict);
      claims.set(path, claim.metadata.name);
    }
    return claims;
  }
}

function ignoreConflict(error: unknown): void {
  if (!isConflict(error)) throw error;
}
