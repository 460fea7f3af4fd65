import type { FieldChange } from '../../domain/records.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import { imageDigest, imageFileFindings } from '../../domain/images/image-files.ts';
import type { ImageFile } from '../../domain/images/image-files.ts';
import {
  localImageNameFindings,
  localImageReference,
  unqualifiedImageName,
  qualifiedImageName,
} from '../../domain/images/local-image-names.ts';
import { ImageSnapshots } from './image-snapshots.ts';
import type { Snapshot } from './image-snapshots.ts';

const RESOURCE = 'image';

export interface Image extends Snapshot {
  name: string;
  /** What an endpoint names to run it. */
  image: string;
}

export interface ListedImage extends Image {
  /** Ids of the endpoints that run it. */
  endpoints: string[];
}

export interface ImagesOptions {
  /** Where the engine looks for them too. */
  folder: string;
  /** Images of an account that something else than its endpoints and templates still needs. */
  otherImagesInUse?(accountId: string): Promise<Iterable<string>>;
}

/**
 * Images of the process engine: folders that people uploaded. The same files under the same name
 * are one image. Each account sees its own alone.
 */
export class Images {
  readonly #context: ResourceContext;
  readonly #parts: ImagesOptions;
  readonly #snapshots: ImageSnapshots;

  constructor(context: ResourceContext, parts: ImagesOptions) {
    this.#context = context;
    this.#parts = parts;
    this.#snapshots = new ImageSnapshots(parts.folder);
  }

  async store(caller: Caller, name: string, files: readonly ImageFile[]): Promise<Image> {
    const findings = [...localImageNameFindings(name), ...imageFileFindings(files)];
    if (findings.length > 0) throw new BerthError('rule', findings.join('; '), { details: findings });
    const { accountId } = caller;
    const digest = imageDigest(files);
    const owned = qualifiedImageName(accountId, name);
    const card = {
      files: files.length,
      size: files.reduce((sum, { content }) => sum + content.length, 0),
      createdAt: this.#context.clock.now(),
    };
    const known = await this.#snapshots.find(owned, digest);
    // What was there already has its entry.
    if (
      known === undefined &&
      (await this.#snapshots.write(owned, digest, files, card, this.#context.ids.resource()))
    ) {
      await this.#tell(caller, 'create', localImageReference(accountId, name, digest), [
        { field: 'files', to: card.files },
        { field: 'size', to: card.size },
      ]);
    }
    return toImage(accountId, name, known ?? { digest, ...card });
  }

  /** Newest first. */
  async list({ accountId }: Caller): Promise<ListedImage[]> {
    const images = (
      await Promise.all((await this.#snapshots.names()).map((owned) => this.#ofName(accountId, owned)))
    ).flat();
    const endpoints = await this.#context.store.endpoints.list(accountId);
    return images
      .map((image) => ({
        ...image,
        endpoints: endpoints.filter((endpoint) => endpoint.image === image.image).map(({ id }) => id),
      }))
      .sort((a, b) => b.createdAt - a.createdAt || a.image.localeCompare(b.image));
  }

  /** Of the images of this name, those that nothing uses. */
  async remove(caller: Caller, name: string): Promise<{ removed: string[]; kept: string[] }> {
    const { accountId } = caller;
    const owned = qualifiedImageName(accountId, name);
    const images = localImageNameFindings(name).length > 0 ? [] : await this.#ofName(accountId, owned);
    if (images.length === 0) throw notFound(RESOURCE, name);
    const used = await this.#used(accountId);
    const [free, kept] = [
      images.filter(({ image }) => !used.has(image)),
      images.filter(({ image }) => used.has(image)),
    ];
    if (free.length === 0)
      throw new BerthError(
        'in-use',
        `${kept.map(({ image }) => image).join(', ')}: an endpoint, a template or a pod of yours names it; remove that, or give it another image`,
      );
    for (const { digest, image } of free) {
      await this.#snapshots.remove(owned, digest, this.#context.ids.resource());
      await this.#tell(caller, 'delete', image);
    }
    return { removed: free.map(({ image }) => image), kept: kept.map(({ image }) => image) };
  }

  /** Images lie in a folder and in no table: their entries are written by themselves. */
  async #tell(caller: Caller, action: string, image: string, changes: FieldChange[] = []): Promise<void> {
    await this.#context.store.audit.record(
      auditEntry(this.#context, caller, action, RESOURCE, image, changes),
    );
  }

  async #ofName(accountId: string, owned: string): Promise<Image[]> {
    const name = unqualifiedImageName(accountId, owned);
    return name === undefined
      ? []
      : (await this.#snapshots.list(owned)).map((snapshot) => toImage(accountId, name, snapshot));
  }

  async #used(accountId: string): Promise<Set<string>> {
    const { store } = this.#context;
    const [endpoints, templates, others] = await Promise.all([
      store.endpoints.list(accountId),
      store.templates.list(accountId),
      this.#parts.otherImagesInUse?.(accountId) ?? [],
    ]);
    return new Set([
      ...endpoints.map(({ image }) => image),
      ...templates.map(({ image }) => image),
      ...others,
    ]);
  }
}

function toImage(accountId: string, name: string, snapshot: Snapshot): Image {
  return { name, image: localImageReference(accountId, name, snapshot.digest), ...snapshot };
}
