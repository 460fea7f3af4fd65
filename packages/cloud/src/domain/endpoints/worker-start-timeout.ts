/** A worker without a heartbeat within this time has failed to start. */
const DEFAULT_START_TIMEOUT_MS = 7 * 60_000;

/**
 * How long a worker may take from the start of its instance until it is ready. RUNPOD_INIT_TIMEOUT (seconds)
 * in its environment overrides the default.
 */
export function workerStartTimeoutMs(env: Readonly<Record<string, string>>): number {
  const own = Number(env['RUNPOD_INIT_TIMEOUT']);
  return Number.isFinite(own) && own > 0 ? own * 1000 : DEFAULT_START_TIMEOUT_MS;
}
