/**
 * A worker in one string, for `node -e`: it runs on the bare machine and in a container alike. `handle`
 * is the text of an async function of (input, job); `before` runs first, once.
 *
 * It tells a result again and again until the server has it: a server that was killed comes back.
 */
export function queueWorkerSource(handle: string, before = ''): string {
  return `
${before}
const handle = ${handle};
const { RUNPOD_WEBHOOK_GET_JOB: take, RUNPOD_WEBHOOK_POST_OUTPUT: done, RUNPOD_WEBHOOK_PING: ping } = process.env;
const { RUNPOD_AI_API_KEY: key, RUNPOD_POD_ID: worker } = process.env;
const headers = { authorization: key };
const fill = (address, id) => address.replaceAll('$RUNPOD_POD_ID', worker).replaceAll('$ID', id);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let current = '';
let stopping = false;
const sendPing = () =>
  fetch(fill(ping, worker) + (current && '&job_id=' + current), { headers, signal: AbortSignal.timeout(5000) });
setInterval(() => void sendPing().catch(() => undefined), 2000).unref();
process.on('SIGTERM', () => {
  stopping = true;
  if (current === '') process.exit(0);
});
const tell = async (id, result) => {
  for (;;) {
    try {
      const { status } = await fetch(fill(done, id) + '&isStream=false', {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
        body: JSON.stringify(result),
      });
      if (status < 500) return;
    } catch {
      await pause(50);
    }
  }
};
while (!stopping) {
  try {
    const signal = AbortSignal.timeout(90000);
    const response = await fetch(fill(take, worker) + '&job_in_progress=0', { headers, signal });
    if (response.status !== 200) {
      if (response.status >= 400) await pause(100);
      continue;
    }
    const job = await response.json();
    current = job.id;
    const result = await handle(job.input, job).then((output) => ({ output }), (error) => ({ error: String(error) }));
    await tell(job.id, result);
  } catch {
    await pause(50);
  }
  current = '';
}
process.exit(0);
`;
}

/**
 * A load balanced worker. `answer` is the text of a function of (request, response); `ping` answers the
 * health check.
 */
export function loadBalancedWorkerSource(
  answer: string,
  ping = '(request, response) => response.end()',
  before = '',
): string {
  return `
import { createServer } from 'node:http';
${before}
const answer = ${answer};
const ping = ${ping};
const server = createServer((request, response) =>
  (request.url === '/ping' ? ping : answer)(request, response),
).listen(Number(process.env.PORT), '0.0.0.0');
process.on('SIGTERM', () => {
  server.close(() => process.exit(0));
  server.closeIdleConnections();
});
`;
}

export function nodeCommand(code: string): { entrypoint: string[]; cmd: string[] } {
  return { entrypoint: [], cmd: ['node', '--input-type=module', '-e', code] };
}
