import { createHash } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT_ACCOUNT_ID } from '../../../domain/caller.ts';
import type { Clock } from '../../../support/clock.ts';
import { BerthError } from '../../../support/errors.ts';
import type { Ids } from '../../../support/ids.ts';
import { staleWhileRevalidate } from '../../../support/stale-while-revalidate.ts';
import { runBuildCommand, type RunBuildCommand } from './build-command.ts';
import { findBuildTools, type BuildTool } from './build-tools.ts';
import { EnvironmentBuilds } from './environment-builds.ts';
import {
  type EnvironmentArchives,
  MAX_ARCHIVED_BYTES,
  packEnvironment,
  unpackEnvironment,
} from './environment-archives.ts';
import {
  buildEnvironment,
  compileEnvironment,
  type EnvironmentBuild,
  type EnvironmentStep,
  relocateEnvironment,
} from './environment-build.ts';
import { environmentsToEvict, type EvictionRules } from './environment-eviction.ts';
import { EnvironmentStore, type StoredEnvironment } from './environment-store.ts';
import { chooseInterpreter, findInterpreters, type PythonInterpreter } from './python-interpreters.ts';
import { UvProgram } from './uv-program.ts';
import { dependencyFiles, readPythonProject, type PythonProject } from './python-project.ts';

/** Changes when environments are built in another way, so that none of before is used. */
const LAYOUT = 1;
/** Nothing is installed. */
const NO_TOOL: BuildTool = { uv: undefined, variables: {} };
const INTERPRETERS_TTL_MS = 5 * 60_000;

export interface PythonEnvironmentsOptions {
  /** The folder of all environments. */
  path: string;
  /** Berth's worker SDK. */
  workerPackage: string;
  eviction: EvictionRules;
  clock: Clock;
  ids: Ids;
  /** The path of uv; null to do without. Default: from PATH. */
  uv?: string | null;
  /** Whether uv is installed where it is not on PATH. */
  installUv?: boolean;
  interpreters?: () => Promise<PythonInterpreter[]>;
  run?: RunBuildCommand;
  /** With several servers: one that another server has built is used here too. */
  archives?: EnvironmentArchives | undefined;
}

/** A folder that runs, and the account that it runs for. */
export interface PythonImage {
  image: string;
  folder: string;
  owner: string;
}

/** The environment of an instance. */
export interface InstancePython {
  folder: string;
  /** The program of the machine that it was built with. What the folder says of it, the account can change. */
  interpreter: string;
}

/**
 * The Python environments of deployed folders: one for each account, content of the dependency files, Python
 * and platform. It is built at most once at a time, and all instances with that content share it. An account
 * does not share with others: installing a package runs code of its own.
 */
export class PythonEnvironments {
  readonly #options: PythonEnvironmentsOptions;
  readonly #store: EnvironmentStore;
  readonly #builds: EnvironmentBuilds<StoredEnvironment>;
  readonly #ownUv: UvProgram | undefined;
  /** The environments whose modules are being compiled, by their folder. */
  readonly #compilations = new Map<string, Promise<void>>();
  readonly #closed = new AbortController();
  #interpreters: () => Promise<PythonInterpreter[]>;

  constructor(options: PythonEnvironmentsOptions) {
    this.#options = options;
    this.#store = new EnvironmentStore(options.path, options.ids);
    this.#builds = new EnvironmentBuilds(options.clock);
    this.#ownUv =
      options.installUv === true ? new UvProgram({ ...options, home: process.env['HOME'] }) : undefined;
    this.#interpreters = this.#freshInterpreters();
  }

  /**
   * The environment that an image needs; undefined if it needs none. Builds it if it is not there.
   * `onLine` is called with the lines of the build. Rejects with a message for users.
   */
  async ensure(
    image: PythonImage,
    { onLine, signal }: { onLine: (line: string) => void; signal: AbortSignal },
  ): Promise<InstancePython | undefined> {
    const project = readPythonProject(image.image, image.folder);
    if (project === undefined) return undefined;
    const interpreter = await this.#interpreterFor(project);
    const key = await this.#keyOf(project, interpreter);
    const found =
      this.#store.find(image.owner, key) ??
      (await this.#builds.join(
        `${image.owner}/${key}`,
        (report, abort) => this.#build(project, interpreter, image.owner, key, report, abort),
        { onLine, signal },
      ));
    this.#store.markUsed(found, this.#options.clock.now());
    return { folder: found.folder, interpreter: interpreter.path };
  }

  /** Begins the build that the first instance would wait for. A build that failed before is tried again. */
  async prepare(image: PythonImage): Promise<void> {
    const project = readPythonProject(image.image, image.folder);
    if (project === undefined) return;
    const key = await this.#keyOf(project, await this.#interpreterFor(project));
    if (this.#store.find(image.owner, key) !== undefined) return;
    this.#builds.forgetFailure(`${image.owner}/${key}`);
    await this.ensure(image, { onLine: () => undefined, signal: new AbortController().signal });
  }

  /** Removes what builds left that did not end, and environments that are no longer needed. */
  async sweep(
    isRunning: (folder: string) => boolean,
    deployed: readonly PythonImage[],
    keepMs = this.#options.eviction.keepMs,
  ): Promise<string[]> {
    const { clock, eviction } = this.#options;
    await this.#store.removeAbandoned(isRunning);
    const environments = await this.#store.list();
    const needed = new Set(
      environments.length === 0 ? [] : await Promise.all(deployed.map((image) => this.#nameOf(image))),
    );
    const evicted = environmentsToEvict(
      environments,
      {
        isRunning: ({ folder }) => isRunning(folder) || this.#compilations.has(folder),
        isDeployed: ({ owner, key }) => needed.has(`${owner}/${key}`),
      },
      { ...eviction, keepMs },
      clock.now(),
    );
    for (const environment of evicted) await this.#store.remove(environment);
    await this.#store.removeUnusedHomes();
    return evicted.map(({ folder }) => folder);
  }

  /** Ends the builds in progress. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.#builds.close(new BerthError('unavailable', 'the server is stopping'));
    await this.compiled();
  }

  /** Resolves when no modules are being compiled. */
  async compiled(): Promise<void> {
    await Promise.all(this.#compilations.values());
  }

  async #build(
    project: PythonProject,
    interpreter: PythonInterpreter,
    owner: string,
    key: string,
    onLine: (line: string) => void,
    signal: AbortSignal,
  ): Promise<StoredEnvironment> {
    const home = await this.#homeOf(owner);
    const { uv, run = runBuildCommand } = this.#options;
    const fetched = await this.#fetch(key, { interpreter, owner, home, run, onLine, signal, tool: NO_TOOL });
    if (fetched !== undefined) return fetched;
    const folder = await this.#createFolder(owner, key);
    const tools = await findBuildTools(
      { uv, run, ownUv: project.dependencies === null ? undefined : this.#ownUv },
      interpreter,
      { folder, home, tmp: join(folder, 'tmp'), owner },
      onLine,
      signal,
    ).catch((error: unknown) => this.#discard(folder, error));
    const attempt = (tool: BuildTool, place: string): Promise<StoredEnvironment> =>
      this.#buildWith(tool, { project, interpreter, folder: place, owner, home, onLine, signal }, key);
    const [first, second] = tools;
    try {
      return await attempt(first, folder);
    } catch (error) {
      if (second === undefined || signal.aborted) throw error;
      onLine('uv could not build the Python environment; pip tries it.');
      return attempt(second, await this.#createFolder(owner, key));
    }
  }

  async #buildWith(
    tool: BuildTool,
    build: Omit<EnvironmentBuild, 'tool' | 'workerPackage' | 'run'>,
    key: string,
  ): Promise<StoredEnvironment> {
    const { run = runBuildCommand, workerPackage } = this.#options;
    const { project, interpreter, folder, owner, onLine } = build;
    onLine(
      `Building the Python environment: Python ${interpreter.version}, ` +
        `${project.dependencies?.file ?? 'no dependencies'}, with ${tool.uv === undefined ? 'pip' : 'uv'}.`,
    );
    try {
      const version = await sdkVersion(workerPackage);
      const whole = { ...build, tool, workerPackage: { folder: workerPackage, version }, run };
      await buildEnvironment(whole);
      const built = await this.#store.publish(owner, key, folder);
      onLine('The Python environment is ready.');
      if (built.folder === folder) this.#compile(whole);
      void this.#archive(built);
      return built;
    } catch (error) {
      return this.#discard(folder, error);
    }
  }

  /** Whether it succeeds or not, the environment works. */
  #compile(build: EnvironmentStep): void {
    const { folder } = build;
    const compilation = compileEnvironment({ ...build, onLine: () => undefined, signal: this.#closed.signal })
      .catch(() => undefined)
      .finally(() => this.#compilations.delete(folder));
    this.#compilations.set(folder, compilation);
  }

  async #createFolder(owner: string, key: string): Promise<string> {
    const folder = await this.#store.createFolder(owner, key);
    await mkdir(join(folder, 'tmp'), { mode: 0o700 });
    return folder;
  }

  async #discard(folder: string, error: unknown): Promise<never> {
    await this.#store.discard(folder);
    throw error;
  }

  /** One that another server has built; undefined if there is none that can be used. */
  async #fetch(key: string, build: Omit<EnvironmentStep, 'folder'>): Promise<StoredEnvironment | undefined> {
    const { archives } = this.#options;
    const { owner, onLine, signal } = build;
    const name = `${owner}/${key}`;
    let folder: string | undefined;
    try {
      const content = await archives?.open(name);
      if (content === undefined) return undefined;
      onLine('Fetching the Python environment, which another server has built.');
      folder = await this.#store.createFolder(owner, key);
      const builtAt = await unpackEnvironment(folder, content);
      await relocateEnvironment({ ...build, folder }, builtAt);
      const found = await this.#store.publish(owner, key, folder);
      onLine('The Python environment is ready.');
      if (found.folder === folder) this.#compile({ ...build, folder });
      return found;
    } catch (error) {
      if (folder !== undefined) await this.#store.discard(folder);
      signal.throwIfAborted();
      archives?.onProblem(`the Python environment ${name} of another server cannot be used`, error);
      return undefined;
    }
  }

  /** After it is in use here: nobody waits for that. */
  async #archive({ owner, key, folder, bytes }: StoredEnvironment): Promise<void> {
    const { archives } = this.#options;
    if (archives === undefined || bytes > MAX_ARCHIVED_BYTES) return;
    const name = `${owner}/${key}`;
    await archives
      .add(name, packEnvironment(folder))
      .catch((error: unknown) =>
        archives.onProblem(`other servers cannot have the Python environment ${name}`, error),
      );
  }

  /** The operator's own builds use the operator's caches and configuration files of pip and uv. */
  async #homeOf(owner: string): Promise<string> {
    const home = process.env['HOME'];
    if (owner === ROOT_ACCOUNT_ID && home !== undefined) return home;
    const own = this.#store.homeFolder(owner);
    await mkdir(own, { recursive: true, mode: 0o700 });
    return own;
  }

  /** What is not there may have been installed since the machine was last searched. */
  async #interpreterFor({ version }: PythonProject): Promise<PythonInterpreter> {
    const known = await this.#interpreters();
    try {
      return chooseInterpreter(version, known);
    } catch {
      this.#interpreters = this.#freshInterpreters();
      return chooseInterpreter(version, await this.#interpreters());
    }
  }

  #freshInterpreters(): () => Promise<PythonInterpreter[]> {
    const { interpreters = findInterpreters, clock } = this.#options;
    return staleWhileRevalidate(interpreters, INTERPRETERS_TTL_MS, clock, () => undefined);
  }

  async #keyOf(project: PythonProject, { path, version, platform }: PythonInterpreter): Promise<string> {
    const { dependencies, isEditable } = project;
    const sdk = await sdkVersion(this.#options.workerPackage);
    const hash = createHash('sha256').update(
      JSON.stringify([LAYOUT, path, version, platform, sdk, dependencies, isEditable]),
    );
    for (const file of await dependencyFiles(project))
      hash.update(`\0${file.path}\0${file.content.length}\0`).update(file.content);
    return hash.digest('hex').slice(0, 16);
  }

  /** Undefined if the image needs no environment, or cannot have one. */
  async #nameOf(image: PythonImage): Promise<string | undefined> {
    try {
      const project = readPythonProject(image.image, image.folder);
      if (project === undefined) return undefined;
      return `${image.owner}/${await this.#keyOf(project, await this.#interpreterFor(project))}`;
    } catch (error) {
      if (error instanceof BerthError) return undefined;
      throw error;
    }
  }
}

async function sdkVersion(folder: string): Promise<string> {
  const text = await readFile(join(folder, 'version.py'), 'utf8');
  return /__version__ = "([\w.]+)"/.exec(text)?.[1] ?? '0';
}
