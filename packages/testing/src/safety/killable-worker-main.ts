// One worker as a process of its own, to be killed and frozen. What it does it writes to a file, before it
// does it: a line that was written outlives the process, however that ends.
import { appendFileSync } from 'node:fs';
import { startRecordingChannelWorker } from './recording-channel-worker.ts';
import { startRecordingPublicWorker } from './recording-public-worker.ts';

const [
  protocol,
  server = '',
  endpointId = '',
  workerId = '',
  run = '',
  key = '',
  concurrency = '1',
  pingEvery = '1000',
  file = '',
] = process.argv.slice(2);
const start = protocol === 'channel' ? startRecordingChannelWorker : startRecordingPublicWorker;
start({
  server: () => server,
  endpointId,
  workerId,
  runName: run,
  key,
  concurrency: Number(concurrency),
  pingEvery: Number(pingEvery),
  report: (event) => appendFileSync(file, `${JSON.stringify(event)}\n`),
});
process.on('disconnect', () => process.exit(0));
