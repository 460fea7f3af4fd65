// The clients of the flood benchmark, in a process of their own: many that are connected, and one that floods.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Crowd } from './crowd.ts';
import type { FloodPlan } from './flood-plan.ts';
import { Flooder } from './flooder.ts';

const plan = JSON.parse(process.env['FLOOD_PLAN'] ?? '') as FloodPlan;
const crowd = new Crowd(plan);
const flooder = new Flooder(plan);
await crowd.gather();
flooder.start();
const counts = createServer((_, response) => response.end(`${crowd}; ${flooder}`)).listen(
  0,
  '127.0.0.1',
  () => {
    const { port } = counts.address() as AddressInfo;
    process.stdout.write(`the flood has begun; ask at http://127.0.0.1:${port}\n`);
  },
);
process.once('SIGTERM', () => process.exit(0));
