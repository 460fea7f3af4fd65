import { InvariantViolation } from './job-model.ts';
import type { EngineInstance } from './simulated-engine.ts';
import type { StoredInterval } from './simulation-storage.ts';

const OPEN_END = Number.MAX_SAFE_INTEGER;
/** Starts and ends are noticed this late, without a fault. */
const SLACK_SECONDS = 10;
/** Each interval is rounded to whole seconds, so one that follows within a second may share one with it. */
const ROUNDING_SECONDS = 1;

/** Every instance is paid for from its start to its end: once, and no longer. */
export function checkBilling(
  intervals: readonly StoredInterval[],
  instances: readonly EngineInstance[],
  lastFaultAt: number,
): void {
  const paid = Map.groupBy(intervals, ({ unitId }) => unitId);
  // A pod may have had several instances.
  const ran = Map.groupBy(instances, ({ spec }) => spec.id);
  for (const [id, runs] of ran) checkInstances(id, runs, paid.get(id) ?? [], lastFaultAt);
  for (const [id, found] of paid) {
    const seconds = found.reduce((sum, { beganAt, endedAt }) => sum + (endedAt - beganAt), 0);
    if (!ran.has(id) && seconds > SLACK_SECONDS)
      throw new InvariantViolation(id, `${seconds} s were paid for an instance that never ran`);
  }
}

function checkInstances(
  id: string,
  runs: readonly EngineInstance[],
  intervals: readonly StoredInterval[],
  lastFaultAt: number,
): void {
  const ran = runs.reduce(
    (sum, { startedAt, endedAt }) => sum + ((endedAt ?? startedAt) - startedAt) / 1000,
    0,
  );
  const firstAt = Math.min(...runs.map(({ startedAt }) => startedAt));
  let paid = 0;
  let last = -Infinity;
  for (const { beganAt, endedAt: until } of intervals) {
    if (until === OPEN_END) throw new InvariantViolation(id, `${id} is paid for, though it ended long ago`);
    if (beganAt < last - ROUNDING_SECONDS)
      throw new InvariantViolation(id, `seconds of ${id} are paid for twice`);
    last = until;
    paid += until - beganAt;
  }
  // A server that is frozen or down notices starts and ends later: only quiet runs are counted to the second.
  const slack = runs.length * (SLACK_SECONDS + (firstAt < lastFaultAt ? 60 : 0)) + ran * 0.02;
  if (paid > ran + slack)
    throw new InvariantViolation(id, `${id} ran for ${ran.toFixed(1)} s and pays for ${paid} s`);
  if (paid < ran - slack)
    throw new InvariantViolation(id, `${id} ran for ${ran.toFixed(1)} s and pays for only ${paid} s`);
}
