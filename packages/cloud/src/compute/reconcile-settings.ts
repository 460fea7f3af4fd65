/** How often the reconcilers look for work that is due. */
export const TICK_MS = 500;
/**
 * How often everything that is not in its desired state is reconciled again: a failure may pass, and a
 * wake-up may be lost.
 */
export const RESYNC_MS = 5_000;
/** How often an idle endpoint is reconciled: new work wakes the reconciler, but the wake-up may be lost. */
export const IDLE_CHECK_INTERVAL_MS = 30_000;
/**
 * Of the endpoints whose rest is over, so many are reconciled at a tick: thousands at once would fill the
 * connections to the database for seconds.
 */
export const IDLE_CHECKS_PER_TICK = 50;
/** How often unneeded instances are searched for, where several servers may have started some. */
export const SWEEP_MS = 5_000;
/** How often what engines run is compared with the records. */
export const ENGINE_SWEEP_MS = 60_000;
/** Pause before an engine that did not answer is connected again. */
export const RECONNECT_MS = 2_000;
/** How often records and files of what ended long ago are deleted. */
export const CLEANUP_INTERVAL_MS = 10 * 60_000;
/** How long closing waits for work in progress. The next server continues what is left. */
export const CLOSE_TIMEOUT_MS = 2_000;
/** How long an instance has to stop by itself before it is killed. */
export const STOP_GRACE_MS = 10_000;
/** How often the health of a worker is checked. */
export const HEALTH_CHECK_INTERVAL_MS = 5_000;
/** How much of a log is read to find out why an instance ended. */
export const CRASH_LOG_LINES = 30;
/** Characters of a reason that are stored. */
export const MAX_REASON_LENGTH = 500;
