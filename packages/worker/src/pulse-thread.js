// Runs beside the worker. While the worker's own thread is busy with a handler that never waits, this
// one says in its place that it lives; otherwise it says nothing. Plain JavaScript with one import
// keeps a thread that most workers never need small.
import { parentPort, workerData } from 'node:worker_threads';

/** @type {import('./pulse.ts').PulseData} */
const { apiKey, pingMs, beats } = workerData;
/** @type {string | undefined} */
let address;
let lastBeat = -1;

parentPort?.on('message', (latest) => {
  address = latest;
});

setInterval(() => {
  const beat = Atomics.load(beats, 0);
  const stands = beat === lastBeat;
  lastBeat = beat;
  if (stands && address !== undefined) void ping(address);
}, pingMs);

/** @param {string} url */
async function ping(url) {
  // Loaded when it is needed for the first time.
  const { get } = url.startsWith('https:') ? await import('node:https') : await import('node:http');
  const request = get(url, { headers: apiKey === '' ? {} : { Authorization: apiKey }, timeout: 2 * pingMs }, (response) => response.resume());
  request.on('timeout', () => request.destroy());
  // The next one follows anyway.
  request.on('error', () => undefined);
}
