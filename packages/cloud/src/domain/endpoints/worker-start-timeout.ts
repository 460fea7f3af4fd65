/** A worker that was not heard of within this time has failed to start. */
const DEFAULT_START_TIMEOUT_MS = 7 * 60_000;

/** How long a worker may take from the start of its instance to being ready. RUNPOD_INIT_TIMEOUT (seconds) of its environment says otherwise. */
export function workerStartTimeoutMs(env: Readonly<Record<string, string>>): number {
  const own = Number(env['RUNPOD_INIT_TIMEOUT']);
  return Number.isFinite(own) && own > 0 ? own * 1000 : DEFAULT_START_TIMEOUT_MS;
}
