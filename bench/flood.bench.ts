import { availableParallelism } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import type { BenchContext } from './support/bench-context.ts';
import { callBerth } from './support/call-berth.ts';
import { createEndpoint } from './support/berth-process.ts';
import type { BerthProcess } from './support/berth-process.ts';
import type { CleanupScope } from './support/cleanup-scope.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import { startProgram } from './support/child-program.ts';
import { HttpConnection } from './support/http-connection.ts';
import { JOB_BODY } from './support/job-body.ts';
import { MILLISECONDS } from './support/bench-report.ts';
import { cpuSeconds, residentMegabytes } from './support/process-usage.ts';
import { repositoryPath } from './support/repository-path.ts';
import { quantile } from './support/statistics.ts';
import type { FloodPart, FloodPlan, FloodTarget } from './flood/flood-plan.ts';

const BACKGROUND_CLIENTS = { connections: 10_000, slowBodies: 2_000, streams: 1_000 };
/** The accounts that the connections, slow bodies and streams belong to. */
const BACKGROUND_ACCOUNTS = 20;
/** The accounts whose `run` is measured, and how often each of them calls. */
const OTHER_ACCOUNTS = 5;
const CALLS_PER_SECOND = 20;
const WARM_SECONDS = 4;
const MEASURE_SECONDS = 10;
/** More connections than the background clients have, and few enough for 20,000 descriptors. */
const MAX_CONNECTIONS = '16000';
const CHATTY_PODS = 2;
/** Longer than what is measured. */
const CHATTY_SECONDS = 120;
/** The clients stand for other machines: where they share the cores with the server, it goes before them. */
const NICE = 10;
/** On a busy machine with two cores it takes minutes until all are connected. */
const GATHER_TIMEOUT_MS = 180_000;
const BARS = { p99: 20, refused: 0 };

interface Measured {
  times: number[];
  refused: string[];
}

/**
 * One tenant floods, thousands are connected: what the others notice of it. Limits are as they are by
 * default.
 */
export async function flood(bench: BenchContext): Promise<void> {
  const { report, scale } = bench;
  const background = {
    connections: Math.ceil(BACKGROUND_CLIENTS.connections * scale),
    slowBodies: Math.ceil(BACKGROUND_CLIENTS.slowBodies * scale),
    streams: Math.ceil(BACKGROUND_CLIENTS.streams * scale),
  };
  const count = (value: number): string => value.toLocaleString('en-US');
  report.part(
    'flood',
    `run of ${OTHER_ACCOUNTS} accounts, beside ${count(background.connections)} open connections, ` +
      `${count(background.slowBodies)} slow bodies, ${count(background.streams)} streams and one account that ` +
      'floods jobs, logs and uploads',
  );
  await withCleanup(async (scope) => {
    const berth = await bench.berth(scope, 'SQLite', {
      BERTH_RATE_LIMITS: 'on',
      BERTH_MAX_CONNECTIONS: MAX_CONNECTIONS,
      // Pods of the flooding account need root, or this.
      ...(process.getuid?.() !== 0 && { BERTH_PROCESS_ISOLATION: 'none' }),
    });
    report.print(
      `${availableParallelism()} cores; the clients of the flood are three processes at nice ${NICE}, ` +
        'those that are measured a fourth at nice 0, as the server',
    );
    const others = await targets(berth, 'other', OTHER_ACCOUNTS);
    await measure(berth, others, WARM_SECONDS);
    const quiet = await measure(berth, others, MEASURE_SECONDS);
    report.print(`quiet: p99 ${quantile(quiet.times, 0.99).toFixed(2)} ms of ${quiet.times.length} runs`);
    const before = residentMegabytes(berth.pid);
    const began = performance.now();
    const load = await startFlood(scope, berth, background);
    report.print(`the flood has begun after ${((performance.now() - began) / 1000).toFixed(0)} s`);
    await measure(berth, others, WARM_SECONDS);
    const used = cpuSeconds(berth.pid);
    const loaded = await measure(berth, others, MEASURE_SECONDS);
    const share = (cpuSeconds(berth.pid) - used) / MEASURE_SECONDS;
    const during = residentMegabytes(berth.pid);
    const counts = await load.counts();
    for (const [name, at] of [
      ['p50', 0.5],
      ['p99', 0.99],
    ] as const)
      report.figures(name, MILLISECONDS, [
        { name: 'quiet', values: [quantile(quiet.times, at)] },
        { name: 'flooded', values: [quantile(loaded.times, at)] },
      ]);
    report.print(
      `\n${loaded.times.length} runs; longest ${Math.max(...loaded.times).toFixed(0)} ms; server ` +
        `${(share * 100).toFixed(0)} % of a core, ${before.toFixed(0)} MB before, ${during.toFixed(0)} ` +
        'MB during',
    );
    report.print(`the flood: ${counts}`);
    for (const reason of new Set(loaded.refused)) report.print(`refused: ${reason}`);
    const times = quantile(loaded.times, 0.99) / quantile(quiet.times, 0.99);
    report.bar({
      part: 'flood',
      what: 'p99 of run of others, over its quiet value',
      bar: `<= ${BARS.p99} times`,
      measured: times.toFixed(1),
      met: scale < 1 ? undefined : times <= BARS.p99,
    });
    report.bar({
      part: 'flood',
      what: 'requests of others that were refused',
      bar: String(BARS.refused),
      measured: `${loaded.refused.length} of ${loaded.times.length + loaded.refused.length}`,
      met: scale < 1 ? undefined : loaded.refused.length === BARS.refused,
    });
  });
}

async function createAccount(berth: BerthProcess, name: string): Promise<BerthProcess> {
  const { key } = await callBerth<{ key: string }>(berth, 'POST', '/v2/accounts', { name });
  return { ...berth, key };
}

async function targets(berth: BerthProcess, name: string, count: number): Promise<FloodTarget[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const account = await createAccount(berth, `${name}-${index}`);
      return { key: account.key, endpointId: await createEndpoint(account, name) };
    }),
  );
}

/** Calls one after the other, with a pause between them, each on a connection that its account keeps. */
async function measure(berth: BerthProcess, others: FloodTarget[], seconds: number): Promise<Measured> {
  const measured: Measured = { times: [], refused: [] };
  await Promise.all(
    others.map(async ({ key, endpointId }) => {
      let connection = new HttpConnection(berth.url, `Bearer ${key}`);
      const began = performance.now();
      for (let from = began; from - began < seconds * 1000; ) {
        await pause(1000 / CALLS_PER_SECOND);
        from = performance.now();
        try {
          const { status, body } = await connection.request('POST', `/v2/${endpointId}/run`, JOB_BODY);
          if (status === 200) measured.times.push(performance.now() - from);
          else measured.refused.push(`${status} ${body}`);
        } catch (error) {
          measured.refused.push((error as Error).message);
          connection.close();
          connection = new HttpConnection(berth.url, `Bearer ${key}`);
        }
      }
      connection.close();
    }),
  );
  return measured;
}

/** Everybody connects first; then the flood of jobs, logs and uploads begins. */
async function startFlood(
  scope: CleanupScope,
  berth: BerthProcess,
  sizes: typeof BACKGROUND_CLIENTS,
): Promise<{ counts(): Promise<string> }> {
  const background = await targets(berth, 'background', BACKGROUND_ACCOUNTS);
  const flooder = await createAccount(berth, 'flooder');
  const { id: volume } = await callBerth<{ id: string }>(flooder, 'POST', '/v2/network-volumes', {
    name: 'flood',
    size: 100,
    dataCenter: 'LOCAL-1',
  });
  const s3 = await callBerth<{ accessId: string; secret: string }>(flooder, 'POST', '/v2/account/s3-keys', {
    name: 'flood',
  });
  const plan: FloodPlan = {
    url: berth.url,
    background,
    ...sizes,
    flooder: { key: flooder.key, endpointId: await createEndpoint(flooder, 'flood'), volume, s3 },
  };
  const addresses: string[] = [];
  const startPart = async (part: FloodPart): Promise<void> => {
    const program = await startProgram({
      command: 'nice',
      args: ['-n', String(NICE), process.execPath, repositoryPath('bench/flood/flood-main.ts'), part],
      env: { FLOOD_PLAN: JSON.stringify(plan) },
      ready: /^the flood has begun; ask at (\S+)$/,
      timeoutMs: GATHER_TIMEOUT_MS,
    });
    scope.defer(program.stop);
    addresses.push(program.match[1] ?? '');
  };
  await startPart('background');
  for (let pod = 0; pod < CHATTY_PODS; pod += 1) await startChattyPod(scope, flooder, `chatty-${pod}`);
  await startPart('jobs');
  await startPart('uploads');
  return {
    counts: async () =>
      (await Promise.all(addresses.map(async (address) => (await fetch(address)).text()))).join('; '),
  };
}

async function startChattyPod(scope: CleanupScope, flooder: BerthProcess, name: string): Promise<void> {
  const { id } = await callBerth<{ id: string }>(flooder, 'POST', '/v2/pods', {
    name,
    image: 'local/shell',
    cpu: { id: 'cpu3c', vcpuCount: 2 },
    args: `timeout ${CHATTY_SECONDS} yes all work and no play makes a dull log`,
  });
  scope.defer(() => callBerth(flooder, 'DELETE', `/v2/pods/${id}`));
  for (;;) {
    const { status } = await callBerth<{ status: string }>(flooder, 'GET', `/v2/pods/${id}`);
    if (status === 'RUNNING') return;
    if (status !== 'PROVISIONING' && status !== 'STARTING') throw new Error(`${name} is ${status}`);
    await pause(50);
  }
}
