import { spawnSync } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { preparePython, pythonEnvironment } from '../../clients/support/python-environment.mjs';
import { repositoryPath } from './repository-path.ts';

const NAME = 'runpod';
const VERSIONS = `
import platform
from importlib.metadata import version
print(', '.join([f'{name} {version(name)}' for name in ['${NAME}', 'fastapi', 'uvicorn']] + [f'Python {platform.python_version()}']))
`;

/** A Python that has the worker SDK, or in one line why there is none. */
export type PythonSdk = { path: string; versions: string } | { reason: string };

/** The environment is the one of the tests of clients; whoever needs it first installs it. */
export async function pythonSdk(): Promise<PythonSdk> {
  const reason = await preparePython(
    NAME,
    pathToFileURL(repositoryPath(`clients/python/${NAME}/requirements.txt`)),
  );
  if (reason !== undefined) return { reason };
  const path = `${pythonEnvironment(NAME)}/bin/python`;
  const { status, stdout, stderr } = spawnSync(path, ['-c', VERSIONS], { encoding: 'utf8' });
  // An environment stays behind when the Python that it was made from is gone.
  if (status !== 0)
    return {
      reason: `${NAME} cannot be loaded: ${stderr?.trim().split('\n').at(-1) ?? 'its Python does not start'}`,
    };
  return { path, versions: stdout.trim() };
}
