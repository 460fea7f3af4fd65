// The clients of the flood benchmark. Each part is a process: `background`, clients that stay connected; `jobs`
// and `uploads`, with which one account floods.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { BackgroundClients } from './background-clients.ts';
import type { FloodPart, FloodPlan } from './flood-plan.ts';
import { jobFlooder } from './job-flooder.ts';
import { uploadFlooder } from './upload-flooder.ts';

const PARTS: Record<FloodPart, (plan: FloodPlan) => { start(): Promise<void> | void }> = {
  background: (plan) => new BackgroundClients(plan),
  jobs: jobFlooder,
  uploads: uploadFlooder,
};

const part = PARTS[process.argv[2] as FloodPart](JSON.parse(process.env['FLOOD_PLAN'] ?? '') as FloodPlan);
await part.start();
const counts = createServer((_, response) => response.end(String(part))).listen(0, '127.0.0.1', () => {
  const { port } = counts.address() as AddressInfo;
  process.stdout.write(`the flood has begun; ask at http://127.0.0.1:${port}\n`);
});
process.once('SIGTERM', () => process.exit(0));
