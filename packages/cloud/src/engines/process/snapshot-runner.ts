import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock } from '../../support/clock.ts';
import { ruleError } from '../../support/errors.ts';
import { randomIds } from '../../support/ids.ts';
import { PYTHON_WORKER_PACKAGE, workerModule } from '../../support/program-files.ts';
import { unpackTar } from '../../support/tar/tar-unpack.ts';
import { SNAPSHOT_IMAGE_VARIABLE, SNAPSHOT_URL_VARIABLE } from '../deployed-folders.ts';
import { ROOT_ACCOUNT_ID } from '../../domain/caller.ts';
import { ImageEnvironments } from './image-environments.ts';
import { type LocalImagePaths, resolveCommand, resolveImage } from './local-images.ts';
import { prependPythonPath } from '../python-hook.ts';

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
const SIGNAL_EXIT_CODE = 128;

export interface SnapshotRunOptions {
  env: NodeJS.ProcessEnv;
  /** The command of the container, in place of the folder's own. */
  argv: readonly string[];
  /** Called with the progress of a build. */
  onLine(line: string): void;
}

/** Fetches a deployed folder into this container and runs it to its end. Returns its exit code. */
export async function runSnapshot({ env, argv, onLine }: SnapshotRunOptions): Promise<number> {
  const { [SNAPSHOT_URL_VARIABLE]: url, [SNAPSHOT_IMAGE_VARIABLE]: image, ...own } = env;
  if (url === undefined || image === undefined)
    throw ruleError(`the runner needs ${SNAPSHOT_URL_VARIABLE} and ${SNAPSHOT_IMAGE_VARIABLE}`);
  const root = join(tmpdir(), 'berth');
  const paths: LocalImagePaths = {
    images: join(root, 'images'),
    examples: null,
    workerModule: workerModule(),
    pythonCache: join(root, 'python-cache'),
  };
  const [, name = '', digest = ''] = /^local\/([^:]+):(.+)$/.exec(image) ?? [];
  await fetchSnapshot(url, join(paths.images, name, digest));
  const found = resolveImage(image, paths);
  const python = await ensurePython(image, paths, join(root, 'python'), onLine);
  return run(resolveCommand(found, { entrypoint: [], cmd: argv }), found.folder ?? root, {
    ...own,
    ...(python === undefined
      ? { PYTHONPATH: prependPythonPath(dirname(PYTHON_WORKER_PACKAGE), own['PYTHONPATH'] || undefined) }
      : { VIRTUAL_ENV: python, PATH: `${join(python, 'bin')}:${own['PATH'] ?? ''}` }),
  });
}

async function fetchSnapshot(url: string, folder: string): Promise<void> {
  const response = await fetch(url).catch((error: unknown) => {
    throw ruleError(`Berth cannot be reached from this container: ${String((error as Error).cause)}`);
  });
  if (!response.ok || response.body === null)
    throw ruleError(
      `the folder could not be fetched from Berth: ${response.status} ${await response.text()}`,
    );
  await unpackTar(folder, response.body);
}

/** The packages that the folder needs are installed in this container. */
async function ensurePython(
  image: string,
  imagePaths: LocalImagePaths,
  path: string,
  onLine: (line: string) => void,
): Promise<string | undefined> {
  const environments = new ImageEnvironments({
    path,
    imagePaths,
    workerPackage: PYTHON_WORKER_PACKAGE,
    installUv: true,
    clock: systemClock,
    ids: randomIds,
    deployedImages: () => Promise.resolve([]),
  });
  return environments.ensureWith(image, ROOT_ACCOUNT_ID, onLine, new AbortController().signal);
}

async function run(
  [program, ...args]: readonly [string, ...string[]],
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const child = spawn(program, args, { cwd, env, stdio: 'inherit' });
  for (const signal of SIGNALS) process.on(signal, () => child.kill(signal));
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  return code ?? SIGNAL_EXIT_CODE + (signal === null ? 0 : constants.signals[signal]);
}
