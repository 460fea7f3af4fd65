// Starts Berth with `npm start` in this clone, runs one job and stops it. Runs on any Node from 20 on, as
// `npm start` does: CI and tests/fresh-clone.test.ts try each of them with it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const WAIT_MS = 240_000;
const data = mkdtempSync(join(tmpdir(), 'berth-start-'));
// In a group of its own: npm starts a shell, and that starts the server.
const server = spawn('npm', ['start', '--', '--port', '0', '--data', data], {
  cwd: fileURLToPath(new URL('..', import.meta.url)),
  detached: true,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const ended = once(server, 'exit');
try {
  const url = await serverUrl();
  const key = readFileSync(join(data, 'root.key'), 'utf8').trim();
  const output = await runJob(url, { authorization: `Bearer ${key}`, 'content-type': 'application/json' });
  process.stdout.write(`${process.version}: a job on a fresh start answered ${JSON.stringify(output)}\n`);
} finally {
  stop();
  await ended;
  rmSync(data, { recursive: true, force: true, maxRetries: 3 });
}

/** The address in the line that says that it serves. */
async function serverUrl() {
  let output = '';
  for await (const text of server.stdout.setEncoding('utf8')) {
    process.stdout.write(text);
    output += text;
    const url = /^berth is up at (\S+)\n/m.exec(output)?.[1];
    if (url === undefined) continue;
    server.stdout.resume();
    return url;
  }
  throw new Error('npm start ended before Berth was up');
}

/**
 * @param {string} url
 * @param {Record<string, string>} headers
 */
async function runJob(url, headers) {
  const endpoint = await call('POST', `${url}/v2/serverless`, headers, {
    name: 'echo',
    type: 'QUEUE',
    image: 'local/echo',
    cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
    workers: { min: 0, max: 1 },
  });
  const input = { word: 'hello' };
  const job = await call('POST', `${url}/v2/${endpoint.id}/runsync?wait=${WAIT_MS}`, headers, { input });
  // A worker outlives the server.
  await call('DELETE', `${url}/v2/serverless/${endpoint.id}`, headers);
  if (job.status !== 'COMPLETED' || JSON.stringify(job.output) !== JSON.stringify(input))
    throw new Error(`the job ended with ${JSON.stringify(job)}`);
  return job.output;
}

/**
 * @param {string} method
 * @param {string} url
 * @param {Record<string, string>} headers
 * @param {object} [body]
 * @returns {Promise<any>}
 */
async function call(method, url, headers, body) {
  const answer = await fetch(url, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${url} answered ${answer.status} ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}

function stop() {
  if (server.pid === undefined || server.exitCode !== null) return;
  try {
    process.kill(-server.pid, 'SIGTERM');
  } catch {
    // It has ended meanwhile.
  }
}
