import type { InstanceSpec } from '../instance.ts';
import type { AccountPolicies } from './account-policies.ts';
import type { KubernetesClient } from './client/kubernetes-client.ts';
import { apiStatus, isConflict, isNotFound } from './client/kubernetes.errors.ts';
import type { ClusterSettings } from './kubernetes-options.ts';
import { labelValue } from './pod-labels.ts';
import type { KubernetesVolumes } from './kubernetes-volumes.ts';

export interface TenantObjectsDeps {
  client: KubernetesClient;
  namespace: string;
  settings: ClusterSettings;
  policies: Pick<AccountPolicies, 'ensure'>;
}

/**
 * What pods need beside themselves: the namespace, the claims of their volumes, and the network policy of
 * their account.
 */
export class TenantObjects {
  readonly #deps: TenantObjectsDeps;
  #namespace: Promise<void> | undefined;

  constructor(deps: TenantObjectsDeps) {
    this.#deps = deps;
  }

  /** Returns the claims of its mounts by path. */
  async prepare(
    spec: InstanceSpec,
    volumes: Pick<KubernetesVolumes, 'ensureClaim'>,
  ): Promise<ReadonlyMap<string, string>> {
    await this.ensureNamespace();
    const owner = spec.labels['account'];
    if (owner !== undefined) await this.#deps.policies.ensure(owner);
    const claims = new Map<string, string>();
    if (this.#deps.settings.sharedFolders) return claims;
    const account = labelValue(owner ?? '');
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
}

function ignoreConflict(error: unknown): void {
  if (!isConflict(error)) throw error;
}
