import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** An example worker that can be deployed without changes. */
export interface HubListing {
  name: string;
  title: string;
  /** The first paragraph of its README. */
  description: string;
  /** The whole README, in Markdown. */
  readme: string;
  language: 'TypeScript' | 'JavaScript' | 'Python';
  /** The image reference that an endpoint uses to run it. */
  image: string;
  releaseId: string;
  changedAt: number;
}

/** The owner of all listings. */
export const HUB_OWNER = 'berth';

const LANGUAGES: Record<string, HubListing['language']> = {
  'handler.ts': 'TypeScript',
  'handler.js': 'JavaScript',
  'handler.mjs': 'JavaScript',
  'handler.py': 'Python',
};

/**
 * Workers that are part of Berth. Each is a folder that the process engine runs as `local/<folder>`. Only
 * queue workers are listed, since hub releases are deployed as queue endpoints.
 */
export class Hub {
  readonly #folder: string;
  #found: Promise<HubListing[]> | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The listings, ordered by name. Read once: they do not change while the server runs. */
  listings(): Promise<HubListing[]> {
    return (this.#found ??= this.#read());
  }

  async release(id: string): Promise<HubListing | undefined> {
    return (await this.listings()).find(({ releaseId }) => releaseId === id);
  }

  async #read(): Promise<HubListing[]> {
    const names = (await readdir(this.#folder, { withFileTypes: true }).catch(() => []))
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    const found = await Promise.all(names.sort().map((name) => this.#listing(name)));
    return found.filter((listing) => listing !== undefined);
  }

  async #listing(name: string): Promise<HubListing | undefined> {
    const folder = join(this.#folder, name);
    const handler = (await readdir(folder)).find((file) => file in LANGUAGES);
    const language = LANGUAGES[handler ?? ''];
    if (handler === undefined || language === undefined) return undefined;
    const [readme, { mtimeMs }] = await Promise.all([
      readFile(join(folder, 'README.md'), 'utf8').catch(() => ''),
      stat(join(folder, handler)),
    ]);
    const [title = '', description = ''] = readme.split(/\n\s*\n/, 2);
    return {
      name,
      title: title.replace(/^#+\s*/, '').trim() || name,
      description: description.replaceAll(/\s+/g, ' ').trim(),
      readme,
      language,
      image: `local/${name}`,
      releaseId: `${HUB_OWNER}-${name}`,
      changedAt: Math.floor(mtimeMs),
    };
  }
}
