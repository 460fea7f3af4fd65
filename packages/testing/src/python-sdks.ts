import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A Python, and the variables that make an SDK importable as `WORKER_SDK` says. */
export interface PythonSdk {
  python: string;
  env: Record<string, string>;
}

const SOURCES = fileURLToPath(new URL('../../worker-python/src', import.meta.url));
const OF_THE_CLIENTS = fileURLToPath(
  new URL('../../../clients/.installed/runpod/bin/python', import.meta.url),
);

/** Berth's own SDK, or in one line why it cannot run. */
export function berthPythonSdk(): PythonSdk | string {
  const { status } = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 10))']);
  if (status !== 0) return 'there is no python3 of version 3.10 or newer';
  return { python: 'python3', env: { PYTHONPATH: SOURCES, WORKER_SDK: 'berth_worker' } };
}

/**
 * The public SDK with the start-up hook, or in one line why there is none. It is looked for in
 * BERTH_SDK_PYTHONS and where the tests of clients install it.
 */
export function acceleratedPythonSdk(): PythonSdk | string {
  const python = [...(process.env['BERTH_SDK_PYTHONS'] ?? '').split(delimiter), OF_THE_CLIENTS].find(
    (path) => path !== '' && existsSync(path),
  );
  if (python === undefined) return 'no Python has the public SDK: set BERTH_SDK_PYTHONS';
  return {
    python,
    env: { PYTHONPATH: `${SOURCES}/berth_worker/accelerate/path`, WORKER_SDK: 'runpod' },
  };
}
