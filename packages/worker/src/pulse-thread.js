// Runs beside the workers of a process. While their own thread is busy with a handler that never waits, this
// one says in their place that they live; otherwise it says nothing. Plain JavaScript with one import
// keeps a thread that is rarely needed small.
import { parentPort, workerData } from 'node:worker_threads';

/** @typedef {import('./pulse.ts').PulseMessage} PulseMessage */

/** @type {Int32Array} */
const beats = workerData;
/** @type {Map<number, { message: PulseMessage, timer: NodeJS.Timeout }>} */
const pulses = new Map();

parentPort?.on('message', (/** @type {PulseMessage} */ message) => {
  const pulse = pulses.get(message.worker);
  if (message.address === undefined) {
    clearInterval(pulse?.timer);
    pulses.delete(message.worker);
  } else if (pulse === undefined) pulses.set(message.worker, { message, timer: watch(message) });
  else pulse.message = message;
});

/** @param {PulseMessage} message */
function watch({ worker, pingMs }) {
  let lastBeat = -1;
  return setInterval(() => {
    const beat = Atomics.load(beats, 0);
    const message = pulses.get(worker)?.message;
    if (beat === lastBeat && message?.address !== undefined) {
      const isWhole = Atomics.load(message.changes, 0) === message.knownChanges;
      void ping(isWhole ? message.address : `${message.address}&job_ids=partial`, message.apiKey, 2 * pingMs);
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
  // Loaded when it is needed for the first time.
  const { get } = address.startsWith('https:') ? await import('node:https') : await import('node:http');
  const request = get(
    address,
    { headers: apiKey === '' ? {} : { Authorization: apiKey }, timeout },
    (response) => response.resume(),
  );
  request.on('timeout', () => request.destroy());
  // The next one follows anyway.
  request.on('error', () => undefined);
}
