import { mkdir, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { Turns } from '../../engines/turns.ts';
import type { NetworkVolume } from '../../store/records.ts';
import { removeTree } from '../../support/remove-tree.ts';
import type { Context } from '../context.ts';
import { folderBesideVolume, folderOfVolume } from './folder.ts';
import { Ground } from './ground.ts';
import { isAbsence } from './held-folder.ts';
import { Objects } from './objects.ts';
import { Uploads } from './uploads.ts';
import { Usage } from './usage.ts';
import type { VolumeUsage } from './usage.ts';

const BYTES_PER_GB = 1024 ** 3;
/** Where the data of removed volumes goes. No id has a dot. */
const REMOVED = '.removed';

/** What lies in network volumes, on the disk of this machine or on one that several share. */
export class VolumeContents {
  readonly #context: Context;
  readonly #data: string;
  readonly #onProblem: (error: unknown) => void;
  readonly #turns = new Turns();
  readonly #usages = new Map<string, Usage>();

  /** `onProblem` is told when the data of a removed volume could not be wiped. */
  constructor(context: Context, data: string, onProblem: (error: unknown) => void = () => undefined) {
    this.#context = context;
    this.#data = data;
    this.#onProblem = onProblem;
  }

  objects(volume: NetworkVolume): Objects {
    const { ids } = this.#context;
    return new Objects({
      ground: this.#ground(volume),
      capacity: volume.size * BYTES_PER_GB,
      usage: this.#usage(volume.id),
      turns: this.#turns,
      ids,
    });
  }

  uploads(volume: NetworkVolume): Uploads {
    const { ids, clock } = this.#context;
    return new Uploads({
      objects: this.objects(volume),
      ground: this.#ground(volume),
      usage: this.#usage(volume.id),
      turns: this.#turns,
      clock,
      ids,
    });
  }

  usage(volume: Pick<NetworkVolume, 'id'>): Promise<VolumeUsage> {
    return this.#usage(volume.id).measured();
  }

  /** The volume is gone. Its data is out of reach at once; to wipe it may take a while, and nobody waits for that. */
  async remove(id: string): Promise<void> {
    this.#usages.delete(id);
    const bin = folderBesideVolume(this.#data, REMOVED);
    await mkdir(bin, { recursive: true });
    for (const [index, folder] of [
      folderOfVolume(this.#data, id),
      folderBesideVolume(this.#data, id),
    ].entries()) {
      await rename(folder, join(bin, `${id}-${index}-${this.#context.ids.resource()}`)).catch(
        (error: unknown) => {
          if (!isAbsence(error)) throw error;
        },
      );
    }
    void this.wipeRemoved();
  }

  /** Wipes the data of removed volumes, with what an earlier Berth left. What cannot be wiped keeps nothing else on disk. */
  async wipeRemoved(): Promise<void> {
    const bin = folderBesideVolume(this.#data, REMOVED);
    for (const name of await this.#namesIn(bin)) await removeTree(join(bin, name)).catch(this.#onProblem);
  }

  async #namesIn(bin: string): Promise<string[]> {
    try {
      return await readdir(bin);
    } catch (error) {
      if (!isAbsence(error)) this.#onProblem(error);
      return [];
    }
  }

  #ground({ id, accountId }: NetworkVolume): Ground {
    const isThere = async (): Promise<boolean> =>
      (await this.#context.store.volumes.find(accountId, id)) !== undefined;
    return new Ground({
      root: folderOfVolume(this.#data, id),
      aside: folderBesideVolume(this.#data, id),
      isThere,
    });
  }

  #usage(id: string): Usage {
    let usage = this.#usages.get(id);
    if (usage === undefined) {
      usage = new Usage([folderOfVolume(this.#data, id), `${folderBesideVolume(this.#data, id)}/uploads`]);
      this.#usages.set(id, usage);
    }
    return usage;
  }
}
