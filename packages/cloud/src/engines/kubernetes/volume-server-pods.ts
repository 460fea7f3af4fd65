import { createHmac } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { VOLUME_SERVER_PORT } from '../../domain/volume-server-protocol.ts';
import { BerthError } from '../../support/errors.ts';
import type { VolumeServer } from '../engine-volumes.ts';
import { connectionOpens } from '../port-connection.ts';
import type { KubernetesClient } from './client/kubernetes-client.ts';
import { toKubernetesError } from './client/kubernetes.errors.ts';
import { deletePod, readPod } from './kubernetes-instance.ts';
import type { PodObject } from './kubernetes-objects.ts';
import type { ClusterSettings } from './kubernetes-options.ts';
import { createPod } from './pod-launch.ts';
import { adoptSecrets, createSecrets } from './pod-secrets.ts';
import { podState } from './pod-state.ts';
import type { PortForwards } from './port-forward.ts';
import { VOLUME_SERVER, volumeServerManifests, volumeServerName } from './volume-server-pod.ts';

const POLL_INTERVAL_MS = 200;
const START_TIMEOUT_MS = 120_000;

export interface VolumeServerPodsDeps {
  client: KubernetesClient;
  installation: string;
  dataCenterId: string;
  settings: ClusterSettings;
  /** Makes the tokens, which every server of the installation can make again. */
  key: Buffer;
  /** Reaches ports through the API server; without it, by the pod's address. */
  forwards: PortForwards | undefined;
}

/** The pods that serve the files of claims, one for each claim whose files were asked for. */
export class VolumeServerPods {
  readonly #deps: VolumeServerPodsDeps;
  readonly #known = new Map<string, VolumeServer>();
  readonly #starting = new Map<string, Promise<VolumeServer>>();

  constructor(deps: VolumeServerPodsDeps) {
    this.#deps = deps;
  }

  /** Where the server of this volume answers; starts one if none runs. The claim must be there. */
  async connect(volumeId: string): Promise<VolumeServer> {
    const known = this.#known.get(volumeId);
    if (known !== undefined) return known;
    let starting = this.#starting.get(volumeId);
    if (starting === undefined) {
      starting = this.#start(volumeId).finally(() => this.#starting.delete(volumeId));
      this.#starting.set(volumeId, starting);
    }
    const server = await starting;
    this.#known.set(volumeId, server);
    return server;
  }

  /** The server of this volume, if it runs. */
  async find(volumeId: string): Promise<VolumeServer | undefined> {
    const known = this.#known.get(volumeId);
    if (known !== undefined) return known;
    const pod = await readPod(this.#deps.client, this.#path(volumeId));
    return pod === undefined || podState(pod).status !== 'running' ? undefined : this.#reach(volumeId, pod);
  }

  forget(volumeId: string): void {
    this.#known.delete(volumeId);
  }

  async remove(volumeId: string): Promise<void> {
    this.forget(volumeId);
    const pod = await readPod(this.#deps.client, this.#path(volumeId));
    if (pod !== undefined) await deletePod(this.#deps.client, this.#path(volumeId), pod.metadata.uid, 1);
  }

  /** Called for every pod that the watch reports: one that ended is deleted. */
  async handlePod({ metadata, ...pod }: PodObject): Promise<void> {
    if (metadata.labels?.[VOLUME_SERVER] === undefined || metadata.deletionTimestamp !== undefined) return;
    if (podState({ metadata, ...pod }).status !== 'exited') return;
    const { client, settings } = this.#deps;
    await deletePod(
      client,
      `/api/v1/namespaces/${settings.namespace}/pods/${metadata.name}`,
      metadata.uid,
      0,
    );
  }

  async #start(volumeId: string): Promise<VolumeServer> {
    const { client } = this.#deps;
    const path = this.#path(volumeId);
    const signal = AbortSignal.timeout(START_TIMEOUT_MS);
    let reason = 'its pod does not answer';
    try {
      while (!signal.aborted) {
        const pod = await readPod(client, path);
        const state = pod === undefined ? undefined : podState(pod);
        if (pod === undefined || state?.status === 'exited') await this.#create(volumeId, path, signal);
        else if (state?.status === 'running') {
          const server = await this.#reach(volumeId, pod);
          if (server !== undefined) return server;
        } else if (state?.isPermanent === true) break;
        reason = state?.reasons[0] ?? reason;
        await pause(POLL_INTERVAL_MS);
      }
    } catch (error) {
      if (!signal.aborted) throw toKubernetesError(error);
    }
    throw new BerthError('unavailable', `the files of the network volume cannot be served: ${reason}`);
  }

  async #create(volumeId: string, path: string, signal: AbortSignal): Promise<void> {
    const manifests = volumeServerManifests({ ...this.#deps, volumeId, token: this.#token(volumeId) });
    const deps = { ...this.#deps, signal };
    await createSecrets(manifests, deps);
    await adoptSecrets(manifests, await createPod(manifests, path, deps), deps);
  }

  async #reach(volumeId: string, pod: PodObject): Promise<VolumeServer | undefined> {
    const { forwards } = this.#deps;
    const token = this.#token(volumeId);
    if (forwards !== undefined) {
      const address = await forwards.address(this.#path(volumeId), VOLUME_SERVER_PORT);
      return address && { ...address, token };
    }
    const host = pod.status?.podIP;
    if (host === undefined || !(await connectionOpens(host, VOLUME_SERVER_PORT))) return undefined;
    return { host, port: VOLUME_SERVER_PORT, token };
  }

  #token(volumeId: string): string {
    return createHmac('sha256', this.#deps.key).update(volumeId).digest('base64url');
  }

  #path(volumeId: string): string {
    const { installation, settings } = this.#deps;
    return `/api/v1/namespaces/${settings.namespace}/pods/${volumeServerName(installation, volumeId)}`;
  }
}
