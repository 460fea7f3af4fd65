import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import type { Clock } from '../../support/clock.ts';
import { SegmentedLog } from '../logs/segmented-log.ts';
import type { KubernetesClient } from './client/kubernetes-client.ts';
import { KubernetesInstance, readPod } from './kubernetes-instance.ts';
import type { PodObject } from './kubernetes-objects.ts';
import { INSTALLATION, labelValue, podName, readDetails } from './pod-labels.ts';
import { podState } from './pod-state.ts';
import type { PortForwards } from './port-forward.ts';

/** How long a running pod is cached. */
const CACHE_TTL_MS = 1000;

export interface PeerPodsDeps {
  client: KubernetesClient;
  namespace: string;
  installation: string;
  clock: Clock;
  forwards: PortForwards | undefined;
}

/**
 * Pods that another Berth server of this installation manages, as they are asked for. Their end and the log
 * that outlives them are left to that server.
 */
export class PeerPods {
  readonly #deps: PeerPodsDeps;
  readonly #cache = new Map<string, { instance: KubernetesInstance; until: number }>();

  constructor(deps: PeerPodsDeps) {
    this.#deps = deps;
  }

  /** Finds a running instance. */
  async find(id: string): Promise<KubernetesInstance | undefined> {
    const known = this.#cache.get(id);
    if (known !== undefined && performance.now() < known.until) return known.instance;
    const pod = await this.#read(id);
    if (pod === undefined) {
      this.#cache.delete(id);
      await this.#deps.forwards?.close(this.#path(id));
      return undefined;
    }
    // Keep the object of the same pod: its CPU meter needs the last reading.
    const isSame = known?.instance.isRunning === true && known.instance.uid === pod.metadata.uid;
    const instance = isSame ? known.instance : this.#create(pod, '');
    if (instance === undefined) return undefined;
    instance.update(pod);
    this.#cache.set(id, { instance, until: performance.now() + CACHE_TTL_MS });
    return instance;
  }

  /** The output that the node still has, by way of a log for this reader alone. */
  async *logs(
    id: string,
    query: LogQuery,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<LogLine, void, undefined> {
    const pod = await this.#read(id);
    const folder = await mkdtemp(join(tmpdir(), 'berth-log-'));
    const instance = pod && this.#create(pod, folder);
    try {
      instance?.captureOutput(await SegmentedLog.open(folder));
      yield* instance?.logs(query, signal) ?? [];
    } finally {
      await instance?.detach();
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** The pod, if it runs. */
  async #read(id: string): Promise<PodObject | undefined> {
    const { client, installation } = this.#deps;
    const pod = await readPod(client, this.#path(id));
    if (pod === undefined || pod.metadata.labels?.[INSTALLATION] !== labelValue(installation))
      return undefined;
    return podState(pod).status === 'running' ? pod : undefined;
  }

  #path(id: string): string {
    const { namespace, installation } = this.#deps;
    return `/api/v1/namespaces/${namespace}/pods/${podName(installation, id)}`;
  }

  #create(pod: PodObject, logFolder: string): KubernetesInstance | undefined {
    const details = readDetails(pod.metadata);
    if (details === undefined) return undefined;
    return new KubernetesInstance({
      ...this.#deps,
      pod,
      details,
      logFolder,
      onEnded: () => undefined,
      onProblem: () => undefined,
    });
  }
}
