// Runs beside the workers of a process. While their event loop is blocked by a handler that never awaits,
// this thread pings for them; otherwise it sends nothing. Plain JavaScript with one import keeps this thread
// small.
import { parentPort, workerData } from 'node:worker_threads';

/** @typedef {import('./ping-thread.ts').PingThreadMessage} PingThreadMessage */

/** @type {Int32Array} */
const mainThreadTicks = workerData;
/** @type {Map<number, { message: PingThreadMessage, timer: NodeJS.Timeout }>} */
const watchedWorkers = new Map();

parentPort?.on('message', (/** @type {PingThreadMessage} */ message) => {
  const pulse = watchedWorkers.get(message.worker);
  if (message.pingUrl === undefined) {
    clearInterval(pulse?.timer);
    watchedWorkers.delete(message.worker);
  } else if (pulse === undefined) watchedWorkers.set(message.worker, { message, timer: watch(message) });
  else pulse.message = message;
});

/** @param {PingThreadMessage} message */
function watch({ worker, pingMs }) {
  let lastBeat = -1;
  return setInterval(() => {
    const beat = Atomics.load(mainThreadTicks, 0);
    const message = watchedWorkers.get(worker)?.message;
    if (beat === lastBeat && message?.pingUrl !== undefined) {
      const isWhole = Atomics.load(message.changes, 0) === message.changesInPingUrl;
      void ping(isWhole ? message.pingUrl : `${message.pingUrl}&job_ids=partial`, message.apiKey, 2 * pingMs);
    }
    lastBeat = beat;
  }, pingMs);
}

/**
 * @param {string} address
 * @param {string} apiKey
 * @param {number} timeout
 */
async function ping(address, apiKey, timeout) {
  // Loaded on first use, and without the rest of what an import would load (see http/node-http.ts).
  const { get } = process.getBuiltinModule(address.startsWith('https:') ? 'node:https' : 'node:http');
  const request = get(
    address,
    { headers: apiKey === '' ? {} : { Authorization: apiKey }, timeout },
    (response) => response.resume(),
  );
  request.on('timeout', () => request.destroy());
  // The next ping follows anyway.
  request.on('error', () => undefined);
}
