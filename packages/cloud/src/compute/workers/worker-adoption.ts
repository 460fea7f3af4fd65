import type { InstanceEngine } from '../../engines/engine.ts';
import type { Instance, InstanceHandle } from '../../engines/instance.ts';
import type { Log } from '../../support/log.ts';
import type { WorkerTermination } from './worker-termination.ts';
import type { WorkerRegistry } from './worker-registry.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';

export interface WorkerAdoptionDeps {
  registry: WorkerRegistry;
  termination: WorkerTermination;
  engines: ReadonlyMap<string, InstanceEngine>;
  log: Log;
}

/** Takes up the workers of a data center that an earlier Berth left, as far as they still run, and removes instances that nobody knows. */
export async function adoptWorkers(
  dataCenterId: string,
  engine: InstanceEngine,
  living: readonly Worker[],
  deps: WorkerAdoptionDeps,
  isCurrent: () => boolean,
): Promise<void> {
  const running = new Map(
    (await engine.list()).map((instance): [string, Instance] => [instance.id, instance]),
  );
  for (const record of living.filter((worker) => worker.dataCenterId === dataCenterId)) {
    if (!isCurrent()) return;
    await adoptWorker(record, running.get(record.id) ?? (await instanceFromHandle(engine, record)), deps);
  }
  for (const { id } of orphanedInstances([...running.values()], living, dataCenterId, deps.engines)) {
    if (!isCurrent()) return;
    // Another data center of this engine may have started it since the records were read.
    if (deps.registry.findWorkerByInstance(id) !== undefined) continue;
    deps.log.warn({ dataCenterId, instance: id }, 'an instance that nobody knows is removed');
    await engine.remove(id, 0);
  }
}

/** Instances of workers of which there is no record. Data centers may share an engine: what another one has is taken up there. */
export function orphanedInstances(
  running: readonly Instance[],
  living: readonly Worker[],
  dataCenterId: string,
  engines: ReadonlyMap<string, InstanceEngine>,
): Instance[] {
  const sharing = living.filter((worker) => engines.get(worker.dataCenterId) === engines.get(dataCenterId));
  const known = new Set(sharing.map(({ id }) => id));
  return running.filter(({ id, labels }) => labels['kind'] === 'worker' && !known.has(id));
}

async function instanceFromHandle(engine: InstanceEngine, { handle }: Worker): Promise<Instance | undefined> {
  return handle === null ? undefined : engine.adopt(JSON.parse(handle) as InstanceHandle);
}

/** One that was about to leave is ready again, and is let go anew where that still holds. */
async function adoptWorker(
  record: Worker,
  instance: Instance | undefined,
  { registry, termination }: WorkerAdoptionDeps,
): Promise<void> {
  const fleet = registry.getOrCreate(record.endpointId);
  if (fleet.workers.has(record.id)) return;
  const member = fleet.add({
    ...record,
    state: record.state === 'leaving' ? 'ready' : record.state,
    startedAt: record.startedAt ?? instance?.startedAt ?? null,
  });
  member.runningSince = instance?.startedAt ?? record.createdAt;
  if (instance === undefined || instance.status === 'exited')
    return termination.handleExit(member, {
      exitCode: instance?.exitCode ?? null,
      reason: 'it ended while Berth was away',
      at: instance?.endedAt ?? undefined,
    });
  if (record.handle !== null && record.startedAt !== null) return;
  member.record = { ...member.record, handle: JSON.stringify(instance.handle) };
  await registry.save(member);
}
