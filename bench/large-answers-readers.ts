// The readers of large-answers.ts: each reads the same large answer over and over, on a connection of its
// own.
import { Agent } from 'node:http';
import { readWhole } from './support/read-whole.ts';

const READERS = 30;
const { URL: url = '', KEY: key = '' } = process.env;
let bytes = 0;

for (let index = 0; index < READERS; index += 1) void read();
process.send?.('reading');
process.once('message', () => process.send?.(bytes, () => process.exit(0)));

async function read(): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (;;) bytes += await readWhole(agent, url, key);
}
