import { setTimeout as pause } from 'node:timers/promises';
import { BerthError } from '../../support/errors.ts';
import type { EngineVolume, EngineVolumes, VolumeServer } from '../engine-volumes.ts';
import type { InstanceVolume } from '../instance.ts';
import type { KubernetesClient } from './client/kubernetes-client.ts';
import { apiStatus, isConflict, isNotFound, toKubernetesError } from './client/kubernetes.errors.ts';
import type { ClaimObject, ObjectList } from './kubernetes-objects.ts';
import type { ClusterSettings } from './kubernetes-options.ts';
import { labelValue, ownershipSelector } from './pod-labels.ts';
import { parseQuantity } from './quantity.ts';
import { claimName, claimRequests, volumeClaim, volumeOf } from './volume-claims.ts';
import type { VolumeServerPods } from './volume-server-pods.ts';

const REMOVAL_RETRY_MS = 10_000;

export interface KubernetesVolumesDeps {
  client: KubernetesClient;
  installation: string;
  dataCenterId: string;
  settings: ClusterSettings;
  servers: VolumeServerPods;
  /** Creates the namespace where it is missing. */
  ensureNamespace(): Promise<void>;
  onProblem: (what: string, error: unknown) => void;
}

/** Volumes as persistent volume claims. */
export class KubernetesVolumes implements EngineVolumes {
  readonly #deps: KubernetesVolumesDeps;
  readonly #closed = new AbortController();

  constructor(deps: KubernetesVolumesDeps) {
    this.#deps = deps;
  }

  async create({ accountId, ...volume }: EngineVolume): Promise<void> {
    await this.#deps.ensureNamespace();
    await this.ensureClaim({ ...volume, shared: true }, labelValue(accountId));
  }

  /** Returns the name of the claim. */
  async ensureClaim(volume: InstanceVolume, account: string): Promise<string> {
    const claim = volumeClaim(volume, this.#deps, account);
    await this.#deps.client.create(this.#claims, claim).catch((error: unknown) => {
      if (!isConflict(error)) throw toKubernetesError(error);
    });
    return claim.metadata.name;
  }

  async grow({ id, sizeInGb }: EngineVolume): Promise<void> {
    const { client } = this.#deps;
    const path = this.#path(id);
    try {
      const claim = await client.get<ClaimObject>(path);
      const requests = claimRequests(sizeInGb);
      // It may be larger than the record says, after an update that failed.
      if (
        parseQuantity(claim.spec.resources?.requests?.['storage'] ?? '0') >= parseQuantity(requests.storage)
      )
        return;
      await client.merge(path, { spec: { resources: { requests } } });
    } catch (error) {
      if (isNotFound(error)) return;
      const status = apiStatus(error);
      if (status === 403 || status === 422)
        throw new BerthError('rule', `its storage cannot be made larger: ${(error as Error).message}`, {
          cause: error,
        });
      throw toKubernetesError(error);
    }
  }

  async remove(id: string): Promise<void> {
    try {
      await this.#remove(id);
    } catch (error) {
      this.#deps.onProblem(`the claim of volume ${id} could not be deleted; trying again`, error);
      void this.#removeLater(id);
    }
  }

  async list(): Promise<string[]> {
    const { client, installation, dataCenterId } = this.#deps;
    const { items } = await client
      .get<ObjectList<ClaimObject>>(this.#claims, {
        labelSelector: ownershipSelector(installation, dataCenterId),
      })
      .catch((error: unknown) => {
        throw toKubernetesError(error);
      });
    return items.flatMap((claim) => volumeOf(claim) ?? []);
  }

  async connect(volume: EngineVolume): Promise<VolumeServer> {
    const running = await this.#deps.servers.find(volume.id);
    if (running !== undefined) return running;
    await this.create(volume);
    return this.#deps.servers.connect(volume.id);
  }

  findServer(id: string): Promise<VolumeServer | undefined> {
    return this.#deps.servers.find(id);
  }

  forgetServer(id: string): void {
    this.#deps.servers.forget(id);
  }

  close(): void {
    this.#closed.abort();
  }

  /** The cluster keeps a claim until the last pod that mounts it is gone. */
  async #remove(id: string): Promise<void> {
    await this.#deps.servers.remove(id);
    await this.#deps.client.delete(this.#path(id)).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }

  async #removeLater(id: string): Promise<void> {
    const { signal } = this.#closed;
    while (!signal.aborted) {
      try {
        await pause(REMOVAL_RETRY_MS, undefined, { signal, ref: false });
        return await this.#remove(id);
      } catch {
        // Reported once; the start of the next server names claims that are left.
      }
    }
  }

  get #claims(): string {
    return `/api/v1/namespaces/${this.#deps.settings.namespace}/persistentvolumeclaims`;
  }

  #path(id: string): string {
    return `${this.#claims}/${claimName(this.#deps.installation, id)}`;
  }
}
