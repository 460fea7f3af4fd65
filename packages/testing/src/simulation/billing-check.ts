import type { DatabaseSync } from 'node:sqlite';
import { InvariantViolation } from './job-model.ts';
import type { EngineInstance } from './simulated-engine.ts';

const OPEN_END = Number.MAX_SAFE_INTEGER;
/** Starts and ends are noticed this late, without a fault. */
const SLACK_SECONDS = 10;

interface Stretch {
  beganAt: number;
  endedAt: number;
}

/** Every instance is paid for from its start to its end: once, and no longer. */
export function checkBilling(
  connection: DatabaseSync,
  instances: readonly EngineInstance[],
  lastFaultAt: number,
): void {
  const select = connection.prepare(
    'select began_at as beganAt, ended_at as endedAt from usage_stretches where unit_id = ? order by began_at, id',
  );
  // A pod may have had several instances.
  for (const [id, runs] of Map.groupBy(instances, ({ spec }) => spec.id))
    checkInstances(id, runs, select.all(id) as unknown as Stretch[], lastFaultAt);
  const known = new Set(instances.map(({ spec }) => spec.id));
  for (const row of connection
    .prepare('select unit_id, sum(ended_at - began_at) as seconds from usage_stretches group by unit_id')
    .all())
    if (!known.has(String(row['unit_id'])) && Number(row['seconds']) > SLACK_SECONDS)
      throw new InvariantViolation(
        String(row['unit_id']),
        `${row['seconds']} s were paid for an instance that never ran`,
      );
}

function checkInstances(
  id: string,
  runs: readonly EngineInstance[],
  stretches: readonly Stretch[],
  lastFaultAt: number,
): void {
  const ran = runs.reduce(
    (sum, { startedAt, endedAt }) => sum + ((endedAt ?? startedAt) - startedAt) / 1000,
    0,
  );
  const firstAt = Math.min(...runs.map(({ startedAt }) => startedAt));
  let paid = 0;
  let last = -Infinity;
  for (const { beganAt, endedAt: until } of stretches) {
    if (until === OPEN_END) throw new InvariantViolation(id, `${id} is paid for, though it ended long ago`);
    if (beganAt < last) throw new InvariantViolation(id, `seconds of ${id} are paid for twice`);
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
