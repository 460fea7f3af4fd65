import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryPath } from './repository-path.ts';
import { startProgram } from './child-program.ts';

export interface BerthProcess {
  url: string;
  key: string;
  pid: number;
  data: string;
  stop(): Promise<void>;
}

export interface BerthStorage {
  data: string;
  /** A postgres URL; empty is SQLite in the data folder. */
  database: string;
  env?: Record<string, string>;
  /** The folder of the version that is started; this one, if not given. */
  checkout?: string;
}

/**
 * Starts Berth as a person would, without rate limits. BENCH_PROFILE names a folder for a processor profile
 * of every server.
 */
export async function startBerth({
  data,
  database,
  env = {},
  checkout = repositoryPath(''),
}: BerthStorage): Promise<BerthProcess> {
  const profiles = process.env['BENCH_PROFILE'];
  const program = await startProgram({
    command: join(checkout, 'packages/cloud/bin/berth'),
    args: ['up', '--port', '0', '--data', data, ...(database === '' ? [] : ['--database', database])],
    env: {
      BERTH_RATE_LIMITS: 'off',
      BERTH_GPUS: 'virtual',
      BERTH_LOG_LEVEL: 'warn',
      ...env,
      ...(profiles !== undefined && { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profiles}` }),
    },
    ready: /^berth is up at (\S+)$/,
  });
  return {
    url: program.match[1] ?? '',
    key: readFileSync(join(data, 'root.key'), 'utf8').trim(),
    pid: program.pid,
    data,
    stop: program.stop,
  };
}

/** A queue endpoint without workers of its own: the measurement brings them. */
export async function createEndpoint({ url, key }: BerthProcess, name: string): Promise<string> {
  const response = await fetch(`${url}/v2/serverless`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      name,
      type: 'QUEUE',
      image: 'local/shell',
      cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
      workers: { min: 0, max: 0 },
    }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`the endpoint could not be made: ${response.status} ${text}`);
  return (JSON.parse(text) as { id: string }).id;
}
