import type { StoredEnvironment } from './environment-store.ts';

/** An environment that was used this recently stays: an instance with it may just be starting. */
const GRACE_MS = 60 * 60_000;

export interface EvictionRules {
  /** How long an environment is kept after its last use, if no endpoint needs it. */
  keepMs: number;
  /** Above this, environments go that were not used for the longest time. */
  maxBytes: number;
}

export interface EnvironmentUse {
  /** An instance runs with it. */
  isRunning(environment: StoredEnvironment): boolean;
  /** An endpoint needs it for its next worker. */
  isDeployed(environment: StoredEnvironment): boolean;
}

/** The environments to remove. One that an instance runs with always stays. */
export function environmentsToEvict(
  environments: readonly StoredEnvironment[],
  { isRunning, isDeployed }: EnvironmentUse,
  { keepMs, maxBytes }: EvictionRules,
  now: number,
): StoredEnvironment[] {
  const free = environments
    .filter((environment) => !isRunning(environment) && now - environment.usedAt > GRACE_MS)
    .sort((a, b) => a.usedAt - b.usedAt);
  const evicted = new Set(
    free.filter((environment) => !isDeployed(environment) && now - environment.usedAt > keepMs),
  );
  let bytes = environments.reduce(
    (sum, environment) => sum + (evicted.has(environment) ? 0 : environment.bytes),
    0,
  );
  // Those that no endpoint needs go first.
  for (const environment of [...free.filter((one) => !isDeployed(one)), ...free.filter(isDeployed)]) {
    if (bytes <= maxBytes) break;
    if (evicted.has(environment)) continue;
    evicted.add(environment);
    bytes -= environment.bytes;
  }
  return [...evicted];
}
