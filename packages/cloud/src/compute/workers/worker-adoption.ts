import type { InstanceEngine } from '../../engines/engine.ts';
import type { Instance, InstanceHandle } from '../../engines/instance.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';
import type { WorkerTermination } from './worker-termination.ts';
import type { WorkerRegistry } from './worker-registry.ts';

export interface WorkerAdoptionDeps {
  registry: WorkerRegistry;
  termination: WorkerTermination;
  engines: ReadonlyMap<string, InstanceEngine>;
}

/** Workers of another machine cost a request or two each. */
const SIDE_BY_SIDE = 50;

/**
 * Tracks the live workers of an engine's data centers again. Those that ended meanwhile are recorded as
 * ended.
 */
export async function adoptWorkers(
  engine: InstanceEngine,
  instances: ReadonlyMap<string, Instance>,
  live: readonly Worker[],
  deps: WorkerAdoptionDeps,
  isCurrent: () => boolean,
): Promise<void> {
  const here = live.filter((worker) => deps.engines.get(worker.dataCenterId) === engine);
  for (let first = 0; first < here.length; first += SIDE_BY_SIDE) {
    const adopted = here.slice(first, first + SIDE_BY_SIDE).map(async (record) => {
      const instance = instances.get(record.id) ?? (await instanceFromHandle(engine, record));
      if (isCurrent()) await adoptWorker(record, instance, deps);
    });
    await Promise.all(adopted);
    if (!isCurrent()) return;
  }
}

/**
 * Whether no worker of this engine's data centers has the instance. Asked when they have been adopted. What is just being
 * removed is no orphan.
 */
export function isOrphanedWorker(
  { id }: Pick<Instance, 'id'>,
  engine: InstanceEngine,
  { registry, termination, engines }: WorkerAdoptionDeps,
): boolean {
  const worker = registry.findWorkerByInstance(id);
  if (worker === undefined) return !termination.isPending(id);
  return engines.get(worker.record.dataCenterId) !== engine;
}

async function instanceFromHandle(
  engine: InstanceEngine,
  { id, handle }: Worker,
): Promise<Instance | undefined> {
  return handle === null ? engine.findElsewhere?.(id) : engine.adopt(JSON.parse(handle) as InstanceHandle);
}

/** A worker that was being drained is ready again. It is drained again if that is still wanted. */
async function adoptWorker(
  record: Worker,
  instance: Instance | undefined,
  { registry, termination }: WorkerAdoptionDeps,
): Promise<void> {
  const workerSet = registry.getOrCreate(record.endpointId);
  if (workerSet.workers.has(record.id) || termination.isPending(record.id)) return;
  const worker = workerSet.add({
    ...record,
    state: record.state === 'leaving' ? 'ready' : record.state,
    startedAt: record.startedAt ?? instance?.startedAt ?? null,
  });
  worker.runningSince = instance?.startedAt ?? record.createdAt;
  if (instance === undefined || instance.status === 'exited')
    return termination.handleExit(worker, {
      exitCode: instance?.exitCode ?? null,
      reason: instance?.disrupted ?? 'it ended while Berth was away',
      at: instance?.endedAt ?? undefined,
      // Starts that were interrupted by the end of the server are no crashes.
      disrupted: instance === undefined || instance.disrupted !== undefined,
    });
  if (record.handle !== null && record.startedAt !== null) return;
  worker.record = { ...worker.record, handle: JSON.stringify(instance.handle) };
  await registry.save(worker);
}
