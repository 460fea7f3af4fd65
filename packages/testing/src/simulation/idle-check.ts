import { checkBilling } from './billing-check.ts';
import { hasEnded, InvariantViolation, type JobModel } from './job-model.ts';
import type { SimulatedWorld } from './simulated-world.ts';
import type { SimulationStorage } from './simulation-storage.ts';
import { checkWebhooks } from './webhook-check.ts';

export interface EndOfRun {
  database: SimulationStorage;
  world: SimulatedWorld;
  model: JobModel;
  /** Pods whose creation was acknowledged. */
  acknowledgedPods: Iterable<string>;
  lastFaultAt: number;
  /** Nothing is left to do, in the records. */
  rests: boolean;
}

/** What holds when the faults are long over, and nobody submits any more. */
export async function checkIdleState(end: EndOfRun): Promise<void> {
  const { database, world, model, acknowledgedPods, lastFaultAt, rests } = end;
  for (const job of model.jobs.values())
    if (!hasEnded(job))
      throw new InvariantViolation(job.id, `a job is ${job.status}, long after the last fault`);
  for (const { spec } of world.engine.running)
    throw new InvariantViolation(spec.id, `the instance ${spec.id} runs, though there is nothing to do`);
  const pods = await database.pods();
  if (!rests) throw new InvariantViolation('', 'a worker, a pod or a webhook has not ended in the records');
  for (const id of acknowledgedPods)
    if (pods.get(id)?.wanted !== 'terminated')
      throw new InvariantViolation(id, `${id} was acknowledged, and is not terminated in the end`);
  checkWebhooks(
    await database.deliveries(),
    world.receiver.received,
    model.jobs.values(),
    lastFaultAt !== -Infinity,
  );
  checkBilling(await database.intervals(), world.engine.history, lastFaultAt);
}
