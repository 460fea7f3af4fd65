// How long `run` of one account takes while another account reads large results: `node bench/large-answers.ts
// [seconds]`.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import { readWhole } from './support/read-whole.ts';

const RESULT_BYTES = 10 * 1024 * 1024;
const seconds = Number(process.argv[2] ?? 5);

const database = await createTestDatabase('sqlite');
const server = await startServerProcess(database, { BERTH_RATE_LIMITS: 'off', BERTH_LOG_LEVEL: 'error' });
try {
  const reader = await account('reader');
  const other = await account('other');
  const job = await reader.run();
  const worker = reader.worker();
  await worker.take();
  await worker.done(job, { output: 'x'.repeat(RESULT_BYTES) });

  await measureRuns(other, 2);
  const quiet = await measureRuns(other, seconds);
  const before = memoryInMb(server);
  // In a process of their own: what they take to read must not count as the server's time.
  const readers = fork(new URL('large-answers-readers.ts', import.meta.url), {
    env: { ...process.env, URL: `${server.url}/v2/${reader.id}/status/${job}`, KEY: reader.key },
  });
  await once(readers, 'message');
  const loaded = await measureRuns(other, seconds);
  const during = memoryInMb(server);
  readers.send('stop');
  const [bytes] = (await once(readers, 'message')) as [number];
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  const after = memoryInMb(server);
  print(`quiet            p50 ${ms(quiet, 0.5)}  p99 ${ms(quiet, 0.99)}  (${quiet.length} runs)`);
  print(`30 large readers p50 ${ms(loaded, 0.5)}  p99 ${ms(loaded, 0.99)}  (${loaded.length} runs)`);
  print(`readers got ${Math.round(bytes / seconds / 1e6)} MB/s`);
  print(`memory: ${before} MB before, ${during} MB during, ${after} MB five seconds after`);
} finally {
  await server.stop();
  await database.drop();
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function account(name: string): Promise<QueueEndpointClient> {
  const { body } = await server.client().call<{ key: string }>('POST', '/v2/accounts', { name });
  return createQueueEndpoint(server.url, body.key);
}

/** One after the other, in milliseconds, sorted. */
async function measureRuns(jobs: QueueEndpointClient, forSeconds: number): Promise<number[]> {
  const times: number[] = [];
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const until = performance.now() + forSeconds * 1000;
  while (performance.now() < until) {
    const start = performance.now();
    await readWhole(agent, `${server.url}/v2/${jobs.id}/run`, jobs.key, '{"input":{}}');
    times.push(performance.now() - start);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  agent.destroy();
  return times.sort((one, another) => one - another);
}

function ms(sorted: readonly number[], share: number): string {
  return `${(sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(2)} ms`;
}

function memoryInMb({ process: { pid } }: ServerProcess): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
}
