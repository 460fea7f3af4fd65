import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Endpoint } from '../packages/cloud/src/domain/records.ts';
import { workerEnvironment } from '../packages/cloud/src/compute/workers/worker-environment.ts';
import { findOrStartDocker } from '../packages/testing/src/docker-daemon.mjs';
import { createTestImage } from '../packages/testing/src/docker-test-image.mjs';
import type { BenchContext } from './support/bench-context.ts';
import type { BerthProcess } from './support/berth-process.ts';
import { startBerth } from './support/berth-process.ts';
import { callBerth } from './support/call-berth.ts';
import { measurePythonColdStart } from './support/cold-start-python.ts';
import { repositoryPath } from './support/repository-path.ts';
import { killOnExit, stopChild } from './support/child-program.ts';
import { MILLISECONDS } from './support/bench-report.ts';
import type { Contender } from './support/interleaved-rounds.ts';
import { measureInterleaved, valuesOf } from './support/interleaved-rounds.ts';
import type { CleanupScope } from './support/cleanup-scope.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import { quantile } from './support/statistics.ts';

const ROUNDS = 40;
const WARM_UP = 3;
const MAX_OVERHEAD_MS = { process: 50, docker: 150 };
/** Says when it was called, by the clock of the machine. */
const HANDLER = 'export default () => performance.timeOrigin + performance.now();\n';
const HOST_NAME = 'host.docker.internal';

interface ColdStartEndpoint {
  image: string;
  cmd?: string[];
  /** Of workers; with 0 the measurement brings its own. */
  max: 0 | 1;
}

export async function coldstart(bench: BenchContext): Promise<void> {
  const { report } = bench;
  report.part(
    'coldstart',
    `from the submission of a job to an endpoint without workers until it is taken, p95 of ${ROUNDS}, ` +
      'beside the bare start of the same worker',
  );
  await withCleanup(async (scope) => {
    const docker = await findOrStartDocker();
    if ('reason' in docker) report.missingTool('a Docker daemon', docker.reason, 'coldstart of containers');
    else scope.defer(() => docker.stop());
    const berth = await startBerth({
      data: scope.folder('coldstart'),
      database: '',
      env: { BERTH_DOCKER: 'reason' in docker ? 'off' : docker.host },
    });
    scope.defer(berth.stop);
    await compare(
      bench,
      'the process engine',
      'a bare spawn',
      await processSides(berth),
      MAX_OVERHEAD_MS.process,
    );
    await measurePythonColdStart(bench, berth);
    if (!('reason' in docker))
      await compare(
        bench,
        'Docker',
        'docker run',
        await dockerSides(scope, berth, docker.host),
        MAX_OVERHEAD_MS.docker,
      );
  });
}

async function compare(
  { report }: BenchContext,
  name: string,
  peer: string,
  [own, bare]: [Contender, Contender],
  mostOver: number,
): Promise<void> {
  for (let round = 0; round < WARM_UP; round += 1) for (const side of [own, bare]) await side.measure();
  const figures = await measureInterleaved(ROUNDS, [bare, own]);
  report.figures(name, MILLISECONDS, figures);
  const [p95, bareP95] = [
    quantile(valuesOf(figures, own.name), 0.95),
    quantile(valuesOf(figures, bare.name), 0.95),
  ];
  report.print(`p95: ${own.name} ${p95.toFixed(0)} ms, ${bare.name} ${bareP95.toFixed(0)} ms`);
  const over = p95 - bareP95;
  report.bar({
    part: 'coldstart',
    what: `${name}, p95`,
    bar: `<= ${mostOver} ms over ${peer}`,
    measured: `${over.toFixed(0)} ms over`,
    met: over <= mostOver,
  });
}

async function processSides(berth: BerthProcess): Promise<[Contender, Contender]> {
  const { image, folder } = await upload(berth);
  const command = [
    process.execPath,
    repositoryPath('packages/cloud/src/engines/process/run-handler.ts'),
    repositoryPath('packages/worker/src/worker.ts'),
    `${folder}/handler.ts`,
  ];
  return [
    { name: 'an endpoint without workers', measure: () => measureBerthColdStart(berth, { image, max: 1 }) },
    {
      name: 'the handler, spawned',
      measure: () =>
        measureManualColdStart(
          berth,
          { image, max: 0 },
          ([program = '', ...args], env) =>
            spawn(program, args, { env: { PATH: process.env['PATH'], ...env }, stdio: 'ignore' }),
          command,
          berth.url,
        ),
    },
  ];
}

async function dockerSides(
  scope: CleanupScope,
  berth: BerthProcess,
  host: string,
): Promise<[Contender, Contender]> {
  const image = await createTestImage(host, `localhost/berth-bench:p${process.pid}`);
  scope.defer(image.remove);
  const cmd = [
    'node',
    '--input-type=module',
    '-e',
    readFileSync(repositoryPath('bench/workers/cold-start-worker.mjs'), 'utf8'),
  ];
  const order = { image: image.name, cmd };
  const flags = ['-H', host, 'run', '--rm', '--init', '--add-host', `${HOST_NAME}:host-gateway`];
  const url = Object.assign(new URL(berth.url), { hostname: HOST_NAME }).origin;
  let runs = 0;
  const run = (command: string[], env: Record<string, string>) => {
    runs += 1;
    const name = `berth-bench-${process.pid}-${runs}`;
    const child = spawn(
      'docker',
      [
        ...flags,
        '--name',
        name,
        ...Object.entries(env).flatMap(([variable, value]) => ['-e', `${variable}=${value}`]),
        image.name,
        ...command,
      ],
      { stdio: 'ignore' },
    );
    return Object.assign(child, {
      remove: () => void spawnSync('docker', ['-H', host, 'rm', '-f', name], { stdio: 'ignore' }),
    });
  };
  return [
    {
      name: 'an endpoint without workers',
      measure: () => measureBerthColdStart(berth, { ...order, max: 1 }),
    },
    { name: 'docker run', measure: () => measureManualColdStart(berth, { ...order, max: 0 }, run, cmd, url) },
  ];
}

/** Milliseconds until a worker that the fleet starts has the job. */
async function measureBerthColdStart(berth: BerthProcess, order: ColdStartEndpoint): Promise<number> {
  const id = await createEndpoint(berth, order);
  const began = now();
  const at = await runSync(berth, id);
  await callBerth(berth, 'DELETE', `/v2/serverless/${id}`);
  return at - began;
}

type Starter = (
  command: string[],
  env: Record<string, string>,
) => ReturnType<typeof spawn> & { remove?: () => void };

/** Milliseconds until a manually started worker has taken a queued job. */
async function measureManualColdStart(
  berth: BerthProcess,
  order: ColdStartEndpoint,
  start: Starter,
  command: string[],
  url: string,
): Promise<number> {
  const id = await createEndpoint(berth, order);
  const ending = runSync(berth, id);
  await waiting(berth, id);
  const endpoint = { id, type: 'QUEUE' } as Endpoint;
  const env = workerEnvironment({
    id: 'byhand',
    endpoint,
    dataCenterId: 'LOCAL-1',
    gpuTypeId: null,
    gpuCount: 0,
    cpu: 2,
    url,
    token: berth.key,
    volumeId: undefined,
  });
  const began = now();
  const child = start(command, env);
  const exited = killOnExit(child);
  const at = await ending;
  child.remove?.();
  await stopChild(child, exited);
  await callBerth(berth, 'DELETE', `/v2/serverless/${id}`);
  return at - began;
}

async function waiting(berth: BerthProcess, id: string): Promise<void> {
  while (
    (await callBerth<{ jobs: { inQueue: number } }>(berth, 'GET', `/v2/${id}/health`)).jobs.inQueue === 0
  );
}

async function runSync(berth: BerthProcess, id: string): Promise<number> {
  const { status, output } = await callBerth<{ status: string; output: number }>(
    berth,
    'POST',
    `/v2/${id}/runsync?wait=60000`,
    { input: {} },
  );
  if (status !== 'COMPLETED') throw new Error(`the job is ${status}`);
  return output;
}

async function createEndpoint(berth: BerthProcess, { image, cmd, max }: ColdStartEndpoint): Promise<string> {
  const body = {
    name: 'cold',
    type: 'QUEUE',
    image,
    ...(cmd !== undefined && { cmd }),
    cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
    workers: { min: 0, max },
  };
  return (await callBerth<{ id: string }>(berth, 'POST', '/v2/serverless', body)).id;
}

async function upload(berth: BerthProcess): Promise<{ image: string; folder: string }> {
  const { image, digest } = await callBerth<{ image: string; digest: string }>(berth, 'POST', '/v2/images', {
    name: 'cold',
    files: [{ path: 'handler.ts', data: Buffer.from(HANDLER).toString('base64') }],
  });
  return { image, folder: `${berth.data}/images/cold/${digest}` };
}

function now(): number {
  return performance.timeOrigin + performance.now();
}
