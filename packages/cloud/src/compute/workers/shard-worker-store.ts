import type { WorkerStore } from '../../store/worker-store.ts';

/** What the holder of one shard sees of the workers: those of its endpoints. */
export function shardWorkerStore(
  store: WorkerStore,
  owns: (endpointId: string) => boolean,
  isFirst: boolean,
): WorkerStore {
  return {
    ...store,
    listLiveWorkers: async (endpointId) =>
      (await store.listLiveWorkers(endpointId)).filter((worker) => owns(worker.endpointId)),
    listActiveEndpoints: async () => (await store.listActiveEndpoints()).filter(owns),
    listQueuedEndpoints: async () => (await store.listQueuedEndpoints()).filter(owns),
    // One of them forgets for all.
    deleteEndedWorkers: async (endedBefore) => (isFirst ? store.deleteEndedWorkers(endedBefore) : []),
  };
}
