import { PodInstances } from '../../../cloud/src/compute/pods/pod-instances.ts';
import { EndpointRemovals } from '../../../cloud/src/compute/workers/endpoint-removals.ts';
import { WorkerRegistry } from '../../../cloud/src/compute/workers/worker-registry.ts';
import { usageRules } from '../../../cloud/src/metering/usage-rules.ts';
import { Dispatcher } from '../../../cloud/src/queue/dispatcher.ts';
import { JobQueue } from '../../../cloud/src/queue/job-queue.ts';
import { WorkerHeartbeats } from '../../../cloud/src/queue/worker-heartbeats.ts';
import { LeaseElection } from '../../../cloud/src/store/lease-election.ts';
import type { Store } from '../../../cloud/src/store/store.ts';
import { SteadyClock } from '../../../cloud/src/support/steady-clock.ts';
import type { SimulationOptions } from './simulation.ts';

/** A mistake that somebody could make in one layer, to prove that the simulation finds such. */
export interface PlantedBug {
  layer: string;
  mistake: string;
  /** The seed that found it last: it is tried first. Any other may find it too. */
  foundBy?: number;
  options?: Pick<SimulationOptions, 'wrapStore' | 'usage'>;
  /** Returns what takes it out again. */
  plant?(): () => void;
}

export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    layer: 'queue',
    mistake: 'a job that was read once is answered from memory',
    foundBy: 12,
    plant: () => {
      const seen = new WeakMap<object, Map<number, ReturnType<JobQueue['find']>>>();
      return replace(
        JobQueue.prototype,
        'find',
        (find) =>
          function (this: JobQueue, endpointId, seq) {
            const known = seen.get(this) ?? new Map<number, ReturnType<JobQueue['find']>>();
            seen.set(this, known);
            const found = known.get(seq) ?? find.call(this, endpointId, seq);
            known.set(seq, found);
            return found;
          },
      );
    },
  },
  {
    layer: 'dispatcher',
    mistake: 'now and then a job that was taken is given to nobody',
    foundBy: 12,
    plant: () => {
      let takes = 0;
      return replace(
        Dispatcher.prototype,
        'waitForJobs',
        (waitForJobs) =>
          async function (this: Dispatcher, ...args) {
            const jobs = await waitForJobs.apply(this, args);
            takes += jobs.length;
            return takes % 5 === 4 ? [] : jobs;
          },
      );
    },
  },
  {
    layer: 'store',
    mistake: 'the lease is checked on the job as it was read before the transaction',
    foundBy: 67,
    options: { wrapStore: withStaleRules },
  },
  {
    layer: 'reconciler',
    mistake: 'the end of a worker that exits cleanly is not stored',
    foundBy: 12,
    plant: () =>
      replace(
        WorkerRegistry.prototype,
        'save',
        (save) =>
          async function (this: WorkerRegistry, worker) {
            const { state, reason } = worker.record;
            if (state !== 'ended' || reason !== null) await save.call(this, worker);
          },
      ),
  },
  {
    layer: 'ledger',
    mistake: 'the usage of a worker whose exit code is not known does not end',
    options: {
      usage: (prices) => {
        const rules = usageRules(prices);
        return {
          ...rules,
          workerChanges: (before, after) =>
            rules
              .workerChanges(before, after)
              .filter(({ usage }) => usage !== null || after.exitCode !== null),
        };
      },
    },
  },
  {
    layer: 'heartbeats',
    mistake: 'a ping that lists its jobs counts as one that lists none',
    foundBy: 12,
    plant: () =>
      replace(
        WorkerHeartbeats.prototype,
        'recordRunningJobs',
        () =>
          function (this: WorkerHeartbeats, endpointId, workerId) {
            this.recordTake(endpointId, workerId, true);
          },
      ),
  },
  {
    layer: 'clock',
    mistake: 'the time of the machine is taken at once when it was set',
    plant: () =>
      replace(
        SteadyClock.prototype,
        'observe',
        (observe) =>
          function (this: SteadyClock, reference) {
            const step = observe.call(this, reference);
            this.set(reference);
            return step;
          },
      ),
  },
  {
    layer: 'pods',
    mistake: 'an instance that is found after a restart does not count as that of its pod',
    plant: () =>
      replace(
        PodInstances.prototype,
        'add',
        () =>
          function (this: PodInstances) {
            // It is forgotten.
          },
      ),
  },
  {
    layer: 'ledger of pods',
    mistake: 'the usage of a pod that is terminated while it runs does not end',
    options: {
      usage: (prices) => {
        const rules = usageRules(prices);
        return {
          ...rules,
          pod: (before, after) =>
            rules.pod(before, after).filter(({ usage }) => usage !== null || after.wanted !== 'terminated'),
        };
      },
    },
  },
  {
    layer: 'webhooks',
    mistake: 'a receiver that answers with an error counts as one that has accepted',
    options: { wrapStore: withAnyAnswer },
  },
  {
    layer: 'lease of webhooks',
    mistake: 'a webhook is leased without a check that it is as it was read',
    foundBy: 49,
    options: { wrapStore: withUncheckedLease },
  },
  {
    layer: 'fence',
    mistake: 'a former leader that goes on after a pause is not fenced',
    foundBy: 11,
    options: { wrapStore: withoutFence },
  },
  {
    layer: 'fence of shards',
    mistake: 'a server that held a shard and goes on after a pause is not fenced',
    foundBy: 170,
    options: { wrapStore: withoutShardFence },
  },
  {
    layer: 'leadership',
    mistake: 'a server that has lost the lead goes on, and nothing is fenced',
    foundBy: 17,
    options: { wrapStore: withoutFence },
    plant: () => {
      const started = replace(
        LeaseElection.prototype,
        'start',
        (start) =>
          function (this: LeaseElection, onLead) {
            start.call(this, onLead, () => undefined);
          },
      );
      const leading = replace(
        LeaseElection.prototype,
        'isLeading',
        () =>
          function (this: LeaseElection) {
            return true;
          },
      );
      return () => {
        leading();
        started();
      };
    },
  },
  {
    layer: 'deleted endpoints',
    mistake: 'every server removes the workers of an endpoint that it deletes',
    foundBy: 39,
    options: { wrapStore: withUnfencedRemoval },
    plant: () =>
      replace(
        EndpointRemovals.prototype,
        'remove',
        () =>
          function (this: EndpointRemovals, endpointId) {
            return this.finishRemoval(endpointId);
          },
      ),
  },
];

function withAnyAnswer(store: Store): Store {
  const { jobs } = store;
  return {
    ...store,
    jobs: {
      ...jobs,
      updateDelivery: (seen, next) =>
        jobs.updateDelivery(
          seen,
          next.lastStatus === null ? next : { ...next, state: 'delivered', nextAt: null },
        ),
    },
  };
}

function withUncheckedLease(store: Store): Store {
  const { jobs } = store;
  return {
    ...store,
    jobs: {
      ...jobs,
      updateDelivery: async (seen, next) => {
        if (next.state !== 'pending' || next.attempts !== seen.attempts)
          return jobs.updateDelivery(seen, next);
        await jobs.saveDelivery(next);
        return true;
      },
    },
  };
}

function withoutFence(store: Store): Store {
  return { ...store, leading: { ...store.leading, workers: store.workers, pods: store.pods } };
}

function withoutShardFence(store: Store): Store {
  const { workerShards, workers } = store;
  if (workerShards === undefined) return store;
  const leading = workerShards.leading.map((shard) => ({ ...shard, workers }));
  return { ...store, workerShards: { ...workerShards, leading } };
}

function withUnfencedRemoval(store: Store): Store {
  const { removeWorkers } = store.workers;
  return { ...store, leading: { ...store.leading, workers: { ...store.leading.workers, removeWorkers } } };
}

function withStaleRules(store: Store): Store {
  const { jobs } = store;
  return {
    ...store,
    jobs: {
      ...jobs,
      change: async (endpointId, seq, next) => {
        const seen = await jobs.find(endpointId, seq);
        return jobs.change(endpointId, seq, (job) => next(seen?.job ?? job));
      },
    },
  };
}

function replace<T extends object, Name extends keyof T>(
  prototype: T,
  name: Name,
  next: (before: T[Name]) => T[Name],
): () => void {
  const before = prototype[name];
  prototype[name] = next(before);
  return () => void (prototype[name] = before);
}
