import type { Clock } from '../../support/clock.ts';
import type { Instance } from '../instance.ts';
import { InstanceInventory, type InstanceInventoryDeps } from '../instance-inventory.ts';
import { SegmentedLog } from '../logs/segmented-log.ts';
import type { KubernetesClient } from './client/kubernetes-client.ts';
import { toKubernetesError } from './client/kubernetes.errors.ts';
import { listObjects } from './client/list-objects.ts';
import { deletePod, KubernetesInstance } from './kubernetes-instance.ts';
import type { PodObject, SecretObject } from './kubernetes-objects.ts';
import { ownershipSelector, readDetails } from './pod-labels.ts';
import { selectPod } from './pod-selection.ts';
import { podState } from './pod-state.ts';
import type { PortForwards } from './port-forward.ts';

/** A secret without a pod is of a start that was interrupted, unless it is this new. */
const ORPHAN_AGE_MS = 60_000;
const OVERDUE_MARGIN_MS = 60_000;

export interface PodInventoryDeps extends InstanceInventoryDeps {
  client: KubernetesClient;
  namespace: string;
  installation: string;
  dataCenterId: string;
  clock: Clock;
  startTimeoutMs: number;
  /** Whether this server manages the pods now. One that does not captures no output and deletes nothing. */
  isLeading: (labels?: Instance['labels']) => boolean;
  /** Reaches ports through the API server; without it, by the pod's address. */
  forwards: PortForwards | undefined;
}

/** The known instances, kept in sync with the pods of the cluster. */
export class PodInventory extends InstanceInventory<KubernetesInstance> {
  readonly #deps: PodInventoryDeps;

  constructor(deps: PodInventoryDeps) {
    super(deps);
    this.#deps = deps;
  }

  get podsPath(): string {
    return `/api/v1/namespaces/${this.#deps.namespace}/pods`;
  }

  get selector(): string {
    return ownershipSelector(this.#deps.installation, this.#deps.dataCenterId);
  }

  /** Adds an instance for a pod that runs, or has run. */
  track(pod: PodObject): KubernetesInstance | undefined {
    const details = readDetails(pod.metadata);
    if (details === undefined) return undefined;
    const { client, namespace, clock, logs, forwards, onProblem } = this.#deps;
    const instance = new KubernetesInstance({
      client,
      namespace,
      pod,
      details,
      logFolder: logs.folder(details.id),
      clock,
      forwards,
      onEnded: () => this.emitStatus(instance),
      onProblem: (what, error) => onProblem(what, error),
    });
    this.add(instance);
    return instance;
  }

  /** Without the lead there is nothing to adopt yet: it is tried again with it. */
  override async open(): Promise<void> {
    await (this.#deps.isLeading() ? super.open() : this.startLogSweep());
  }

  /** Adopts the pods of an earlier Berth process. Those that have not started may be of another server. */
  protected async recover(): Promise<void> {
    const pods = await this.#listPods();
    for (const pod of pods)
      if (podState(pod).status !== 'starting' && !this.#isOfAnother(pod)) await this.#adopt(pod);
    await this.#removeOverdue(pods);
    await this.#removeOrphans(new Set(pods.map(({ metadata }) => metadata.name)));
  }

  async refresh(): Promise<void> {
    await this.handleList(await this.#listPods());
  }

  /** Where servers share the cluster: whether this one manages others, and not this one. */
  #isOfAnother(pod: PodObject): boolean {
    return this.#deps.isLeading() && !this.#manages(pod);
  }

  /** Whether this server manages the instance of this pod. */
  #manages({ metadata }: PodObject): boolean {
    return this.#deps.isLeading(readDetails(metadata)?.labels);
  }

  /** Takes over a list of all pods. */
  async handleList(pods: readonly PodObject[]): Promise<void> {
    const byUid = new Map(pods.map((pod) => [pod.metadata.uid, pod]));
    for (const instance of this.all()) {
      const pod = byUid.get(instance.uid);
      // A list may be older than a pod that was just created: ask for the pod itself.
      if (pod !== undefined) instance.update(pod);
      else {
        await instance.refresh();
        await this.#forgetDeleted(instance);
      }
    }
    for (const pod of pods) await this.#adoptOther(pod);
    await this.#removeOverdue(pods);
  }

  async handleChange(type: 'ADDED' | 'MODIFIED' | 'DELETED', pod: PodObject): Promise<void> {
    const instance = this.get(readDetails(pod.metadata)?.id ?? '');
    if (instance?.uid === pod.metadata.uid) {
      instance.update(pod);
      if (type === 'DELETED') instance.update(undefined);
      await this.#forgetDeleted(instance);
    } else if (type !== 'DELETED') await this.#adoptOther(pod);
  }

  /** The leading server keeps an instance until it removes it; another one would keep it for ever. */
  async #forgetDeleted(instance: KubernetesInstance): Promise<void> {
    if (!instance.isDeleted || this.#deps.isLeading(instance.details.labels) || this.isBusy(instance.id))
      return;
    await this.#finalizeLog(instance);
    if (this.get(instance.id) === instance) await this.remove(instance);
  }

  async #finalizeLog(instance: KubernetesInstance): Promise<void> {
    try {
      await instance.finalizeLog();
    } catch (error) {
      this.#deps.onProblem(`the log of ${instance.id} could not be completed`, error);
    }
  }

  async #adopt(pod: PodObject): Promise<void> {
    const { logs } = this.#deps;
    const instance = this.track(pod);
    if (instance === undefined) return;
    if (podState(pod).status === 'running') {
      instance.captureOutput(await SegmentedLog.open(logs.folder(instance.id)));
    } else instance.update(pod);
  }

  /** Adopts a pod that another server started while it was the leader, maybe again under a known id. */
  async #adoptOther(pod: PodObject): Promise<void> {
    const id = readDetails(pod.metadata)?.id;
    const { mutex } = this.#deps;
    if (id === undefined) return;
    const isOther = (): boolean => {
      const known = this.get(id);
      return (
        this.#manages(pod) &&
        !this.isBusy(id) &&
        (known === undefined || (!known.isRunning && known.uid !== pod.metadata.uid)) &&
        pod.metadata.deletionTimestamp === undefined &&
        podState(pod).status === 'running'
      );
    };
    if (isOther())
      await mutex.runExclusive('', async () => {
        const known = this.get(id);
        // A log has one writer.
        if (known !== undefined) await this.#finalizeLog(known);
        if (isOther()) await this.#adopt(pod);
      });
  }

  /**
   * Removes pods that wait although nobody waits for them any more: their server ended while they started.
   */
  async #removeOverdue(pods: readonly PodObject[]): Promise<void> {
    for (const pod of pods) {
      const { name, uid, creationTimestamp = '' } = pod.metadata;
      const age = Date.now() - Date.parse(creationTimestamp);
      if (!this.#deps.isLeading()) return;
      if (!this.#manages(pod)) continue;
      if (podState(pod).status === 'starting' && age > this.#deps.startTimeoutMs + OVERDUE_MARGIN_MS)
        await deletePod(this.#deps.client, `${this.podsPath}/${name}`, uid, 0);
    }
  }

  /** Deletes the secrets of starts that were interrupted before their pod was created. */
  async #removeOrphans(podNames: ReadonlySet<string>): Promise<void> {
    const { client, namespace, isLeading, onProblem } = this.#deps;
    try {
      for (const { metadata } of await this.#list<SecretObject>('secrets', withoutData)) {
        const age = Date.now() - Date.parse(metadata.creationTimestamp ?? '');
        const owner = metadata.name.replace(/-(?:env|pull)$/, '');
        if (podNames.has(owner) || age < ORPHAN_AGE_MS) continue;
        if (!isLeading()) return;
        await client.delete(`/api/v1/namespaces/${namespace}/secrets/${metadata.name}`, {
          preconditions: { uid: metadata.uid },
        });
      }
    } catch (error) {
      onProblem('secrets of interrupted starts could not be deleted', error);
    }
  }

  #listPods(): Promise<PodObject[]> {
    return this.#list<PodObject>('pods', selectPod);
  }

  async #list<T>(kind: 'pods' | 'secrets', select: (object: T) => T): Promise<T[]> {
    const { client, namespace } = this.#deps;
    try {
      const path = `/api/v1/namespaces/${namespace}/${kind}`;
      return (await listObjects(client, path, { labelSelector: this.selector }, select)).objects;
    } catch (error) {
      throw toKubernetesError(error);
    }
  }
}

function withoutData({ metadata }: SecretObject): SecretObject {
  return { metadata };
}
