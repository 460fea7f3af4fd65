// Runs beside the worker. While the worker's own thread is busy with a handler that never waits, this
// one says in its place that it lives; otherwise it says nothing.
import { parentPort, workerData } from 'node:worker_threads';
import { HttpClient } from './public/http-client.ts';
import type { PulseData } from './pulse.ts';

const { apiKey, pingMs, beats } = workerData as PulseData;
const http = new HttpClient(apiKey);
let address: string | undefined;
let lastBeat = -1;

parentPort?.on('message', (latest: string) => {
  address = latest;
});

setInterval(() => {
  const beat = Atomics.load(beats, 0);
  const stands = beat === lastBeat;
  lastBeat = beat;
  if (!stands || address === undefined) return;
  // The next one follows anyway.
  http.ask(address, { silenceMs: 2 * pingMs }).catch(() => undefined);
}, pingMs);
