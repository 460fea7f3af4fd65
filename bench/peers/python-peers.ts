import { spawnSync } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { preparePython, pythonEnvironment } from '../../clients/support/python-environment.mjs';
import type { BenchContext } from '../support/bench-context.ts';
import { startRedis } from '../support/bench-redis.ts';
import { runProgram } from '../support/child-program.ts';
import { withCleanup } from '../support/cleanup-scope.ts';
import { repositoryPath } from '../support/repository-path.ts';

export type PythonMeasure = 'drain' | 'runsync' | 'stream';
/** A rate per second, or quantiles in milliseconds. */
export type PythonMeasured = Partial<Record<'rate' | 'p50' | 'p99', number>>;

export interface PythonPeer {
  name: string;
  measures: Record<'drain' | 'runsync', () => Promise<PythonMeasured>>;
}

const PEERS = [
  { name: 'Celery, solo pool', package: 'celery', options: { pool: 'solo' } },
  { name: 'Celery, prefork pool', package: 'celery', options: { pool: 'prefork' } },
  { name: 'RQ', package: 'rq', options: {} },
  { name: 'arq', package: 'arq', options: {} },
];

/** Job queues for Python on Redis, each with one worker process. They are installed on the first run. */
export async function pythonPeers(
  { report, tools }: BenchContext,
  options: Record<string, unknown>,
): Promise<PythonPeer[]> {
  if (!tools.redis) {
    report.missingTool('redis-server', 'apt install redis-server', 'python beside Celery, RQ and arq');
    return [];
  }
  const versions = new Set<string>();
  const peers: PythonPeer[] = [];
  for (const peer of PEERS) {
    const environment = `bench-${peer.package}`;
    const reason = await preparePython(
      environment,
      pathToFileURL(repositoryPath(`bench/python/requirements/${peer.package}.txt`)),
    );
    if (reason !== undefined) {
      report.missingTool(peer.package, reason, `python beside ${peer.name}`);
      continue;
    }
    const path = `${pythonEnvironment(environment)}/bin/python`;
    const code = `from importlib.metadata import version; print("${peer.package}", version("${peer.package}"))`;
    versions.add(spawnSync(path, ['-c', code], { encoding: 'utf8' }).stdout.trim());
    const run = (measure: PythonMeasure) => () =>
      withCleanup(async (scope) => {
        const { port } = await startRedis(scope);
        return measurePythonSide(
          path,
          peer.package,
          measure,
          { ...options, ...peer.options },
          { BENCH_REDIS: `redis://127.0.0.1:${port}` },
        );
      });
    peers.push({ name: peer.name, measures: { drain: run('drain'), runsync: run('runsync') } });
  }
  report.print(`peers: ${[...versions].join(', ')}`);
  return peers;
}

/** Runs `bench/python/<side>_side.py`, whose last line is what it measured. */
export async function measurePythonSide(
  python: string,
  side: string,
  measure: PythonMeasure,
  options: Record<string, unknown>,
  env: Record<string, string> = {},
): Promise<PythonMeasured> {
  const output = await runProgram(
    python,
    [repositoryPath(`bench/python/${side}_side.py`), measure, JSON.stringify(options)],
    { PYTHONDONTWRITEBYTECODE: '1', ...env },
  );
  return JSON.parse(output.trim().split('\n').at(-1) ?? '') as PythonMeasured;
}
