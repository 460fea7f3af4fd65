import { existsSync } from 'node:fs';
import { chmod, mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT_ACCOUNT_ID } from '../../../domain/caller.ts';
import type { Clock } from '../../../support/clock.ts';
import type { Ids } from '../../../support/ids.ts';
import { removeTree } from '../../../support/remove-tree.ts';
import { buildVariables, runBuildCommand } from './build-command.ts';
import type { PythonInterpreter } from './python-interpreters.ts';

const FOLDER = '.uv';
/** It is 20 MB to download; without it, pip does the work. */
const TIMEOUT_MS = 60_000;
/** After a failure: a package index that cannot be reached is not asked at each build. */
const RETRY_MS = 60 * 60_000;
const PIP_INSTALL = [
  ...['-m', 'pip', 'install', '--quiet', '--no-input', '--disable-pip-version-check', '--no-compile'],
  ...['--no-deps', '--only-binary', ':all:', '--retries', '0', '--timeout', '10'],
] as const;

export interface UvProgramOptions {
  /** The folder of all environments. */
  path: string;
  home: string | undefined;
  clock: Clock;
  ids: Ids;
}

/**
 * uv for a machine that has none: installed once beside the environments, with pip and its settings. A first
 * environment is then built in seconds; pip needs half a minute of processor time for the public worker SDK.
 */
export class UvProgram {
  readonly #options: UvProgramOptions;
  #installing: Promise<string | undefined> | undefined;
  #retryAt = 0;

  constructor(options: UvProgramOptions) {
    this.#options = options;
  }

  /** Its path; undefined if it cannot be installed. */
  ensure(
    interpreter: PythonInterpreter,
    onLine: (line: string) => void,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const program = join(this.#options.path, FOLDER, 'bin', 'uv');
    if (existsSync(program)) return Promise.resolve(program);
    if (this.#installing === undefined && this.#options.clock.now() < this.#retryAt)
      return Promise.resolve(undefined);
    this.#installing ??= this.#install(interpreter, program, onLine, signal).finally(() => {
      this.#installing = undefined;
    });
    return this.#installing;
  }

  async #install(
    interpreter: PythonInterpreter,
    program: string,
    onLine: (line: string) => void,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { path, home, clock, ids } = this.#options;
    const target = join(path, `${FOLDER}-${ids.resource()}`);
    onLine('Installing uv, which installs packages many times faster than pip.');
    try {
      await mkdir(join(target, 'tmp'), { recursive: true });
      const code = await runBuildCommand(
        {
          argv: [interpreter.path, ...PIP_INSTALL, '--target', target, 'uv'],
          cwd: target,
          env: buildVariables({ home: home ?? target, tmp: join(target, 'tmp'), root: target }),
          owner: ROOT_ACCOUNT_ID,
          root: target,
        },
        () => undefined,
        AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      );
      if (code !== 0 || !existsSync(join(target, 'bin', 'uv'))) throw new Error(`pip ended with ${code}`);
      // Builds of accounts run it as users of their own.
      for (const folder of [target, join(target, 'bin')]) await chmod(folder, 0o755);
      // Another server may have been faster.
      if (!existsSync(program)) await rename(target, join(path, FOLDER));
      return program;
    } catch {
      onLine('uv could not be installed; pip is used.');
      // A build that was cancelled says nothing of the package index.
      if (!signal.aborted) this.#retryAt = clock.now() + RETRY_MS;
      return undefined;
    } finally {
      await removeTree(target);
    }
  }
}
