import type { KubernetesClient } from './client/kubernetes-client.ts';
import { toKubernetesError } from './client/kubernetes.errors.ts';
import { ListWatch } from './client/list-watch.ts';
import type { PodObject } from './kubernetes-objects.ts';
import { detailsAnnotation, readDetails } from './pod-labels.ts';
import { parseQuantity } from './quantity.ts';

export interface GpuPodsOptions {
  client: Pick<KubernetesClient, 'get' | 'stream'>;
  namespace: string;
  gpuResource: string;
  onProblem: (what: string, error: unknown) => void;
}

/**
 * The pods of the namespace that hold GPUs or wait for some, also those that are not Berth's. A watch keeps them:
 * a list of thousands of pods, to find the few with GPUs, would take a second for each placement.
 */
export class GpuPods {
  readonly #options: GpuPodsOptions;
  readonly #pods = new Map<string, PodObject>();
  #watch: ListWatch<PodObject> | undefined;
  readonly #firstList = Promise.withResolvers<void>();
  #isListed = false;

  constructor(options: GpuPodsOptions) {
    this.#options = options;
    // Waiters get the error; there may be none.
    this.#firstList.promise.catch(() => undefined);
  }

  /** Rejects while the cluster has not answered yet, and cannot be reached. */
  async list(): Promise<readonly PodObject[]> {
    this.#watch ??= this.#start();
    if (!this.#isListed) await this.#firstList.promise;
    return [...this.#pods.values()];
  }

  async close(): Promise<void> {
    await this.#watch?.close();
  }

  #start(): ListWatch<PodObject> {
    const { client, namespace, gpuResource, onProblem } = this.#options;
    return new ListWatch<PodObject>({
      client,
      path: `/api/v1/namespaces/${namespace}/pods`,
      query: {},
      select: (pod) => selectGpuPod(pod, gpuResource),
      onList: async (pods) => {
        this.#pods.clear();
        for (const pod of pods) this.#update(pod);
        this.#isListed = true;
        this.#firstList.resolve();
      },
      onChange: async (type, pod) => {
        if (type === 'DELETED') this.#pods.delete(pod.metadata.uid);
        else this.#update(pod);
      },
      onProblem: (what, error) => {
        this.#firstList.reject(toKubernetesError(error));
        onProblem(what, error);
      },
    });
  }

  #update(pod: PodObject): void {
    const { phase } = pod.status ?? {};
    const isLive = phase === 'Running' || phase === 'Pending';
    if (isLive && wantsGpus(pod, this.#options.gpuResource)) this.#pods.set(pod.metadata.uid, pod);
    else this.#pods.delete(pod.metadata.uid);
  }
}

function selectGpuPod({ metadata, spec, status }: PodObject, gpuResource: string): PodObject {
  const { name, uid, resourceVersion } = metadata;
  return {
    metadata: {
      name,
      uid,
      ...(resourceVersion !== undefined && { resourceVersion }),
      annotations: detailsAnnotation(metadata),
    },
    spec: {
      ...(spec.nodeName !== undefined && { nodeName: spec.nodeName }),
      containers: spec.containers.flatMap((container) => {
        const count = container.resources?.requests?.[gpuResource];
        return count === undefined
          ? []
          : [{ name: container.name, resources: { requests: { [gpuResource]: count } } }];
      }),
    },
    ...(status?.phase !== undefined && { status: { phase: status.phase } }),
  };
}

function wantsGpus({ metadata, spec }: PodObject, gpuResource: string): boolean {
  return (
    spec.containers.some(({ resources }) => parseQuantity(resources?.requests?.[gpuResource] ?? '0') > 0) ||
    (readDetails(metadata)?.gpus ?? null) !== null
  );
}
