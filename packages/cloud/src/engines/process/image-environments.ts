import { ROOT_ACCOUNT_ID } from '../../domain/caller.ts';
import type { InstanceSpec } from '../instance.ts';
import { imageProblem, type LocalImagePaths, resolveImage } from './local-images.ts';
import {
  type InstancePython,
  type PythonEnvironmentsOptions,
  type PythonImage,
  PythonEnvironments,
} from './python/python-environments.ts';
import type { StartLog } from './start-log.ts';

const BYTES_PER_GB = 1024 ** 3;
/** Without settings. */
const DEFAULT_EVICTION = { keepMs: 14 * 24 * 3_600_000, maxBytes: 50 * BYTES_PER_GB };

export interface ImageEnvironmentsOptions extends Omit<PythonEnvironmentsOptions, 'eviction'> {
  eviction?: PythonEnvironmentsOptions['eviction'];
  imagePaths: LocalImagePaths;
  /** The local images of all endpoints: their environments are kept. */
  deployedImages: () => Promise<readonly { image: string; accountId: string }[]>;
}

/** The Python environments that the images of the process engine need. */
export class ImageEnvironments {
  readonly #imagePaths: LocalImagePaths;
  readonly #deployedImages: ImageEnvironmentsOptions['deployedImages'];
  readonly #python: PythonEnvironments;

  constructor({ imagePaths, deployedImages, ...options }: ImageEnvironmentsOptions) {
    this.#imagePaths = imagePaths;
    this.#deployedImages = deployedImages;
    this.#python = new PythonEnvironments({ ...options, eviction: options.eviction ?? DEFAULT_EVICTION });
  }

  /**
   * The environment of an instance; undefined if it needs none. If it fails, the log says why.
   */
  async ensure(
    { image, labels }: Pick<InstanceSpec, 'image' | 'labels'>,
    startLog: StartLog,
    signal: AbortSignal,
  ): Promise<InstancePython | undefined> {
    const found = this.#pythonImage(image, labels['account']);
    if (found === undefined) return undefined;
    try {
      return await this.#python.ensure(found, {
        onLine: (line) => startLog.write(line, buildProgress(line)),
        signal,
      });
    } catch (error) {
      await startLog.fail(error);
      throw error;
    }
  }

  /** The same, for a caller with a log of its own: the folder. */
  async ensureWith(
    image: string,
    owner: string,
    onLine: (line: string) => void,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const found = this.#pythonImage(image, owner);
    return found && (await this.#python.ensure(found, { onLine, signal }))?.folder;
  }

  /** Begins the build that the first instance of an image would wait for. */
  async prepare(image: string, accountId: string): Promise<void> {
    if (imageProblem(image, this.#imagePaths) !== undefined) return;
    const found = this.#pythonImage(image, accountId);
    if (found !== undefined) await this.#python.prepare(found);
  }

  /** Deletes environments that neither these folders' instances nor endpoints need. */
  async sweep(running: ReadonlySet<string | undefined>, keepMs?: number): Promise<string[]> {
    const deployed = (await this.#deployedImages()).filter(
      ({ image }) => imageProblem(image, this.#imagePaths) === undefined,
    );
    return this.#python.sweep(
      (folder) => running.has(folder),
      deployed.flatMap(({ image, accountId }) => this.#pythonImage(image, accountId) ?? []),
      keepMs,
    );
  }

  /** Ends the builds in progress. */
  close(): Promise<void> {
    return this.#python.close();
  }

  /** Undefined for an image without files. */
  #pythonImage(image: string, owner = ROOT_ACCOUNT_ID): PythonImage | undefined {
    const { folder } = resolveImage(image, this.#imagePaths);
    return folder === null ? undefined : { image, folder, owner };
  }
}

/** A line of pip or uv says little by itself. */
function buildProgress(line: string): string {
  return line.includes('Python environment') ? line : `building the Python environment: ${line.trim()}`;
}
