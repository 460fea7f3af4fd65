import { readFileSync } from 'node:fs';
import type { BenchContext } from './bench-context.ts';
import { MILLISECONDS } from './bench-report.ts';
import type { BerthProcess } from './berth-process.ts';
import { callBerth } from './call-berth.ts';
import { measureInterleaved, valuesOf } from './interleaved-rounds.ts';
import { repositoryPath } from './repository-path.ts';
import { median } from './statistics.ts';

const ROUNDS = 10;
/** Between the loaded handler and its first job. */
const MAX_WAIT_MS = 100;
const HANDLER = readFileSync(repositoryPath('bench/workers/cold-start-handler.py'), 'utf8');

interface Side {
  name: string;
  files: Record<string, string>;
  sdk: string;
  accelerate?: true;
  /** The SDK itself looks for a job that it has only every 100 ms. */
  isShownOnly?: true;
}

/** How long a Python handler that is loaded waits for the job that its worker was started for. */
export async function measurePythonColdStart(bench: BenchContext, berth: BerthProcess): Promise<void> {
  const { report } = bench;
  const sdk = await bench.pythonSdk();
  if ('reason' in sdk) report.missingTool('the Python worker SDK', sdk.reason, 'coldstart of the public SDK');
  const command = (python: string): string =>
    JSON.stringify({ command: [python, '-u', 'handler.py'], python: false });
  const sides: Side[] = [
    { name: 'berth-worker', sdk: 'berth_worker', files: { 'requirements.txt': 'berth-worker\n' } },
    ...('reason' in sdk
      ? []
      : [
          {
            name: 'public SDK, accelerated',
            sdk: 'runpod',
            files: { 'berth.json': command(sdk.path) },
            accelerate: true as const,
          },
          {
            name: 'public SDK, unchanged',
            sdk: 'runpod',
            files: { 'berth.json': command(sdk.path) },
            isShownOnly: true as const,
          },
        ]),
  ];
  const contenders = [];
  for (const side of sides) {
    const image = await upload(berth, side);
    const measure = (): Promise<number> => measureWait(berth, image, side);
    await measure();
    contenders.push({ name: side.name, measure });
  }
  const figures = await measureInterleaved(ROUNDS, contenders);
  report.figures('Python: from the loaded handler to its first job', MILLISECONDS, figures);
  for (const { name, isShownOnly } of sides) {
    const wait = median(valuesOf(figures, name));
    if (isShownOnly !== true)
      report.bar({
        part: 'coldstart',
        what: `${name}, from the loaded handler to its first job, median`,
        bar: `<= ${MAX_WAIT_MS} ms`,
        measured: `${wait.toFixed(0)} ms`,
        met: wait <= MAX_WAIT_MS,
      });
  }
}

async function measureWait(berth: BerthProcess, image: string, side: Side): Promise<number> {
  const { id } = await callBerth<{ id: string }>(berth, 'POST', '/v2/serverless', {
    name: 'cold-python',
    type: 'QUEUE',
    image,
    env: { SDK: side.sdk },
    cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
    workers: { min: 0, max: 1 },
    ...(side.accelerate && { accelerate: true }),
  });
  const { status, output } = await callBerth<{ status: string; output: number }>(
    berth,
    'POST',
    `/v2/${id}/runsync?wait=90000`,
    { input: {} },
  );
  if (status !== 'COMPLETED') throw new Error(`the job is ${status}`);
  await callBerth(berth, 'DELETE', `/v2/serverless/${id}`);
  return output;
}

async function upload(berth: BerthProcess, { name, files }: Side): Promise<string> {
  const { image } = await callBerth<{ image: string }>(berth, 'POST', '/v2/images', {
    name: name.toLowerCase().replaceAll(/\W+/g, '-'),
    files: Object.entries({ ...files, 'handler.py': HANDLER }).map(([path, content]) => ({
      path,
      data: Buffer.from(content).toString('base64'),
    })),
  });
  return image;
}
