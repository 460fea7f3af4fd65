// Which containers of Berth ran in a namespace, and when, as the cluster reports it.
import { ListWatch } from '../../../cloud/src/engines/kubernetes/client/list-watch.ts';
import type { PodObject } from '../../../cloud/src/engines/kubernetes/kubernetes-objects.ts';
import { readDetails } from '../../../cloud/src/engines/kubernetes/pod-labels.ts';
import type { KubernetesEngineFixture } from './kubernetes-engine-fixture.ts';

export interface ContainerRun {
  id: string;
  node: string;
  startedAt: number;
  endedAt: number | undefined;
  /** Its node was killed while it ran: nobody knows when it ended. */
  killedAt: number | undefined;
}

export class ContainerRuns {
  /** By the uid of the pod. */
  readonly #runs = new Map<string, ContainerRun>();
  readonly #watch: ListWatch<PodObject>;

  constructor({ cluster, namespace }: KubernetesEngineFixture) {
    this.#watch = new ListWatch<PodObject>({
      client: cluster,
      path: `/api/v1/namespaces/${namespace}/pods`,
      query: {},
      onList: async (pods) => pods.forEach((pod) => this.#note(pod)),
      onChange: async (_, pod) => this.#note(pod),
      onProblem: () => undefined,
      timing: { maxBackoffMs: 1000 },
    });
  }

  all(): ContainerRun[] {
    return [...this.#runs.values()];
  }

  /** Those that run on a node which is killed now. */
  loseNode(node: string): ContainerRun[] {
    const lost = this.all().filter((run) => run.node === node && run.endedAt === undefined);
    const killedAt = Date.now();
    for (const run of lost) run.killedAt = killedAt;
    return lost;
  }

  close(): Promise<void> {
    return this.#watch.close();
  }

  #note(pod: PodObject): void {
    const { uid } = pod.metadata;
    const id = readDetails(pod.metadata)?.id;
    const { running, terminated } = pod.status?.containerStatuses?.[0]?.state ?? {};
    const startedAt = Date.parse(running?.startedAt ?? terminated?.startedAt ?? '');
    if (id === undefined || !(startedAt > 0)) return;
    const known = this.#runs.get(uid);
    const finishedAt = Date.parse(terminated?.finishedAt ?? '');
    this.#runs.set(uid, {
      id,
      node: pod.spec.nodeName ?? '',
      startedAt,
      endedAt: known?.endedAt ?? (finishedAt > 0 ? finishedAt : undefined),
      killedAt: known?.killedAt,
    });
  }
}

/** As far as it is known. */
export function ranFor({ startedAt, endedAt, killedAt }: ContainerRun): number {
  return (killedAt ?? endedAt ?? startedAt) - startedAt;
}

/**
 * How much longer it may have seemed to run: until the cluster gave up its node, or it was not seen to end.
 */
export function unknownFor({ startedAt, endedAt, killedAt }: ContainerRun): number {
  if (killedAt !== undefined || endedAt === undefined) return Date.now() - (killedAt ?? startedAt);
  return 0;
}
