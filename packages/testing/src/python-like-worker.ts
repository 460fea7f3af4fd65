/**
 * A worker that speaks the public protocol and behaves as the Python SDK does: one poll for jobs
 * and one for stops, pings from a second process, and at SIGTERM it ends what it runs, waits for
 * its open polls, and leaves with code 0. A job that comes after SIGTERM is lost, as it is there.
 */
const WORKER_SOURCE = `
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';

const { RUNPOD_WEBHOOK_GET_JOB, RUNPOD_WEBHOOK_POST_OUTPUT, RUNPOD_WEBHOOK_PING, RUNPOD_AI_API_KEY } = process.env;
const { RUNPOD_POD_ID, CONCURRENCY = '1', PINGS = 'yes', SLOW_START = '0' } = process.env;
const headers = { authorization: RUNPOD_AI_API_KEY };
const jobUrl = RUNPOD_WEBHOOK_GET_JOB.replaceAll('$ID', RUNPOD_POD_ID);
const say = (requestId, message) => console.log(JSON.stringify({ requestId, message, level: 'INFO' }));
const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const running = new Map();
let stopping = false;
process.on('SIGTERM', () => { stopping = true; });

const LIST = 'running-jobs';
const list = () => writeFileSync(LIST, [...running.values()].join(','));
const PINGER = [
  'const [url, key, list] = process.argv.slice(1);',
  'const jobs = () => encodeURIComponent(require("fs").readFileSync(list, "utf8"));',
  'const ping = () => fetch(url + "&job_id=" + jobs(), { headers: { authorization: key } }).catch(() => undefined);',
  'ping();',
  'setInterval(ping, 1000);',
].join(' ');
const doings = {
  echo: ({ input }) => input,
  environment: () => process.env,
  sleep: async ({ input, id }) => { say(id, 'asleep'); await later(input.ms); say(id, 'awake'); return 'slept'; },
  block: async ({ input, id }) => {
    await later(input.after ?? 0);
    say(id, 'blocking');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, input.ms);
    return 'blocked';
  },
  exit: ({ input }) => { console.log('leaving with ' + input.code); process.exit(input.code); },
  kill: () => process.kill(process.pid, 'SIGKILL'),
  refresh: () => ({ refresh: true }),
};
const run = async (job) => {
  say(job.id, 'Started.');
  let body;
  try {
    const output = await doings[job.input.do](job);
    body = { output, ...(output?.refresh && { stopPod: true }) };
  } catch (error) {
    body = { error: String(error) };
  }
  say(job.id, 'Finished.');
  const address = RUNPOD_WEBHOOK_POST_OUTPUT.replaceAll('$RUNPOD_POD_ID', RUNPOD_POD_ID).replaceAll('$ID', job.id);
  await fetch(address + '&isStream=false', { method: 'POST', headers, body: JSON.stringify(body) });
};
const takes = async () => {
  while (!stopping) {
    const room = Number(CONCURRENCY) - running.size;
    if (room <= 0) { await Promise.race(running.keys()); continue; }
    const url = room === 1 ? jobUrl : jobUrl.replace('/job-take/', '/job-take-batch/') + '&batch_size=' + room;
    const answer = await fetch(url + '&job_in_progress=' + (running.size > 0 ? 1 : 0), { headers });
    if (answer.status !== 200) continue;
    for (const job of [await answer.json()].flat()) {
      if (stopping) { console.log('LOST ' + job.id); continue; }
      // What runs is listed before it can block everything.
      const work = later(0).then(() => run(job)).finally(() => { running.delete(work); list(); });
      running.set(work, job.id);
      list();
    }
  }
};
const stops = async () => {
  while (!stopping) {
    const answer = await fetch(jobUrl.replace('/job-take/', '/job-stop/'), { headers });
    if (answer.status === 204) await later(100);
  }
};
await later(Number(SLOW_START));
list();
const pingAddress = RUNPOD_WEBHOOK_PING.replaceAll('$RUNPOD_POD_ID', RUNPOD_POD_ID);
if (PINGS === 'yes') spawn(process.execPath, ['-e', PINGER, pingAddress, RUNPOD_AI_API_KEY, LIST], { stdio: 'ignore' });
await Promise.all([takes(), stops()]);
await Promise.all(running.keys());
console.log('left in peace');
process.exit(0);
`;

/** A folder with it, as an image is made of. */
export const PYTHON_LIKE_WORKER_FILES = [
  { path: 'worker.mjs', data: Buffer.from(WORKER_SOURCE).toString('base64') },
  { path: 'berth.json', data: Buffer.from('{"command": ["node", "worker.mjs"]}').toString('base64') },
];
