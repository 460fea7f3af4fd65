import { workerShardOf } from '../../domain/endpoints/worker-shards.ts';
import type { Reconciler } from '../reconciler.ts';
import { shardWorkerStore } from './shard-worker-store.ts';
import type { WorkerComponents, WorkerDeps } from './worker-components.ts';
import { createWorkerReconciler, type WorkerPolicy } from './worker-policy.ts';

/** What manages the workers of some endpoints, or shows what another server knows of them. */
export interface WorkerShard {
  readonly components: WorkerComponents;
  /** Whether this server manages them. */
  isElected(): boolean;
}

/** All endpoints are divided among them; there may be one. */
export interface WorkerShards<Shard extends WorkerShard = WorkerShard> {
  readonly all: readonly Shard[];
  of(endpointId: string): Shard;
}

export interface ReconciledShard extends WorkerShard {
  readonly reconciler: Reconciler<WorkerPolicy>;
}

export interface WorkerShardsDeps {
  count: number;
  /** By shard. With one shard, its store is used as it is. */
  deps(shard: number): WorkerDeps;
  isElected(shard: number): boolean;
}

/** A reconciler for each shard. Those that this server holds are to be started. */
export function createWorkerShards({
  count,
  deps,
  isElected,
}: WorkerShardsDeps): WorkerShards<ReconciledShard> {
  const all = Array.from({ length: count }, (_, shard): ReconciledShard => {
    const owns = (endpointId: string): boolean => workerShardOf(endpointId, count) === shard;
    const own = deps(shard);
    const reconciler = createWorkerReconciler(
      count === 1 ? own : { ...own, owns, store: shardWorkerStore(own.store, owns, shard === 0) },
    );
    return { reconciler, components: reconciler.policy.components, isElected: () => isElected(shard) };
  });
  return shardsBy(all);
}

/** One shard of all endpoints. */
export function singleShard(components: WorkerComponents, isElected = (): boolean => true): WorkerShards {
  return shardsBy([{ components, isElected }]);
}

function shardsBy<Shard extends WorkerShard>(all: readonly Shard[]): WorkerShards<Shard> {
  return {
    all,
    of: (endpointId) => {
      const shard = all[all.length === 1 ? 0 : workerShardOf(endpointId, all.length)];
      if (shard === undefined) throw new Error('there are no shards of workers');
      return shard;
    },
  };
}
