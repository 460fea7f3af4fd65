import type { FieldChange } from '../../domain/records.ts';
import { DAY_MS } from '../../domain/limits.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import type { AuditedAction } from '../../domain/audit.ts';
import type { Caller } from '../../domain/caller.ts';
import { auditEntry, withinQuotas } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import type { RegistryCredentials } from '../registries/registries.ts';
import { IMAGE_DIGEST_PATTERN, imageDigest, imageFileFindings } from '../../domain/images/image-files.ts';
import type { ImageFile } from '../../domain/images/image-files.ts';
import {
  localImageNameFindings,
  localImageReference,
  unqualifiedImageName,
  qualifiedImageName,
} from '../../domain/images/local-image-names.ts';
import { ImageSnapshots } from './image-snapshots.ts';
import type { SharedImages } from './shared-images.ts';
import type { Snapshot } from './image-snapshots.ts';

const RESOURCE = 'image';
/** Of each endpoint, so many releases can be rolled back to, however old their images are. */
const RELEASES_KEPT = 10;
/** What was used this recently stays: an instance with it may just be starting. */
const START_GRACE_MS = 3_600_000;

export interface Image extends Snapshot {
  name: string;
  /** The image reference that an endpoint uses to run it. */
  image: string;
}

export interface ListedImage extends Image {
  /** Ids of the endpoints that run it. */
  endpoints: string[];
}

export interface ImagesOptions {
  /** The engine reads images from the same folder. */
  folder: string;
  /** Where several servers need the images. */
  shared?: Pick<SharedImages, 'publish' | 'remove'>;
  snapshots?: ImageSnapshots;
  /** Images in use by something other than the account's endpoints and templates. */
  otherImagesInUse?(accountId: string): Promise<Iterable<string>>;
  /** Deletes what engines fetched or made, except of these images, and did not use since then. */
  pruneFetched?(unusedSince: number, inUse: ReadonlySet<string>): Promise<string[]>;
  /** Why no engine finds the image; undefined if one does, or none can tell. */
  lookupProblem?(image: string, credentials: RegistryCredentials | undefined): Promise<string | undefined>;
  /** The credentials for pulling an image, as a worker would use them. */
  credentials?(
    accountId: string,
    registryId: string | null,
    image: string,
  ): Promise<RegistryCredentials | undefined>;
}

/**
 * Images of the process engine: uploaded folders. The same files under the same name are one image. Each
 * account sees only its own images.
 */
export class Images {
  readonly #context: ResourceContext;
  readonly #options: ImagesOptions;
  readonly #snapshots: ImageSnapshots;

  constructor(context: ResourceContext, options: ImagesOptions) {
    this.#context = context;
    this.#options = options;
    this.#snapshots = options.snapshots ?? new ImageSnapshots(options.folder);
  }

  /**
   * Why an image that an endpoint would run cannot be found, with the saved credentials that the endpoint
   * would name; undefined if it can, or if that is not known.
   */
  async lookupProblem(
    { accountId }: Caller,
    image: string,
    registryId: string | null,
  ): Promise<string | undefined> {
    const credentials = await this.#options.credentials?.(accountId, registryId, image);
    if (registryId !== null && credentials === undefined) throw notFound('registry', registryId);
    return this.#options.lookupProblem?.(image, credentials);
  }

  async store(caller: Caller, name: string, files: readonly ImageFile[]): Promise<Image> {
    const findings = [...localImageNameFindings(name), ...imageFileFindings(files)];
    if (findings.length > 0) throw new BerthError('rule', findings.join('; '), { details: findings });
    this.#context.disk?.checkRoom();
    const { accountId } = caller;
    const digest = imageDigest(files);
    const qualifiedName = qualifiedImageName(accountId, name);
    const metadata = {
      files: files.length,
      size: files.reduce((sum, { content }) => sum + content.length, 0),
      createdAt: this.#context.clock.now(),
    };
    const known = await this.#snapshots.find(qualifiedName, digest);
    if (known !== undefined) await this.#snapshots.touch(qualifiedName, digest, metadata.createdAt);
    // An image that exists already has its audit entry.
    if (known === undefined && (await this.#write(accountId, qualifiedName, digest, files, metadata))) {
      await this.#audit(caller, 'create', localImageReference(accountId, name, digest), [
        { field: 'files', to: metadata.files },
        { field: 'size', to: metadata.size },
      ]);
    }
    // Also of an image that is there: another server may not have it.
    await this.#options.shared?.publish(qualifiedName, known ?? { digest, ...metadata });
    return toImage(accountId, name, known ?? { digest, ...metadata });
  }

  /** False if another request has written it meanwhile. */
  #write(
    accountId: string,
    qualifiedName: string,
    digest: string,
    files: readonly ImageFile[],
    metadata: Omit<Snapshot, 'digest'>,
  ): Promise<boolean> {
    return withinQuotas(this.#context, accountId, { imageBytes: metadata.size }, async () => {
      const releaseShare = this.#context.diskShares?.take(accountId, metadata.size);
      let isWritten = false;
      try {
        const id = this.#context.ids.resource();
        isWritten = await this.#snapshots.write(qualifiedName, digest, files, metadata, id);
        return isWritten;
      } finally {
        if (!isWritten) releaseShare?.();
      }
    });
  }

  /** The files of an image as a tar archive; undefined if there is none. */
  async archive(qualifiedName: string, digest: string): Promise<AsyncIterable<Uint8Array> | undefined> {
    if (
      !IMAGE_DIGEST_PATTERN.test(digest) ||
      (await this.#snapshots.find(qualifiedName, digest)) === undefined
    )
      return undefined;
    const { packTree } = await import('../../support/tar/tar-pack.ts');
    return packTree(this.#snapshots.folderOf(qualifiedName, digest), '.');
  }

  /** The size of all images of an account. */
  async bytesOf(accountId: string): Promise<number> {
    return (await this.#imagesOf(accountId)).reduce((sum, { size }) => sum + size, 0);
  }

  /** Deletes every image of an account, also those in use: the account is being deleted. */
  async removeAll(accountId: string): Promise<void> {
    for (const { name, digest } of await this.#imagesOf(accountId))
      await this.#removeSnapshot(qualifiedImageName(accountId, name), digest);
  }

  /** Newest first. */
  async list({ accountId }: Caller): Promise<ListedImage[]> {
    const images = await this.#imagesOf(accountId);
    const endpoints = await this.#context.store.endpoints.list(accountId);
    return images
      .map((image) => ({
        ...image,
        endpoints: endpoints.filter((endpoint) => endpoint.image === image.image).map(({ id }) => id),
      }))
      .sort((a, b) => b.createdAt - a.createdAt || a.image.localeCompare(b.image));
  }

  /** Deletes the images of this name that are not in use. */
  async remove(caller: Caller, name: string): Promise<{ removed: string[]; kept: string[] }> {
    const { accountId } = caller;
    const qualifiedName = qualifiedImageName(accountId, name);
    const images =
      localImageNameFindings(name).length > 0 ? [] : await this.#imagesNamed(accountId, qualifiedName);
    if (images.length === 0) throw notFound(RESOURCE, name);
    const used = await this.#imagesInUse(accountId);
    const [free, inUse] = [
      images.filter(({ image }) => !used.has(image)),
      images.filter(({ image }) => used.has(image)),
    ];
    if (free.length === 0)
      throw new BerthError(
        'in-use',
        `${inUse.map(({ image }) => image).join(', ')} is in use by an endpoint, a template or a pod ` +
          'of this account; delete that, or give it another image',
      );
    for (const { digest, image } of free) {
      await this.#removeSnapshot(qualifiedName, digest);
      await this.#audit(caller, 'delete', image);
    }
    return { removed: free.map(({ image }) => image), kept: inUse.map(({ image }) => image) };
  }

  /**
   * Deletes images that were last uploaded before this time and that nothing names: no endpoint and none of
   * its last releases, no template, no pod. Returns them.
   */
  async expire(uploadedBefore: number): Promise<string[]> {
    const removed: string[] = [];
    for (const { id } of await this.#context.store.accounts.list())
      removed.push(...(await this.#expireOf(id, uploadedBefore)).map(({ image }) => image));
    return removed;
  }

  /**
   * Deletes the images of the account that `expire` would; for the operator, also what the engines of this
   * server fetched or made for any account.
   */
  async prune(caller: Caller, unusedDays: number): Promise<{ removed: string[]; kept: string[] }> {
    const { accountId } = caller;
    const unusedSince = this.#context.clock.now() - unusedDays * DAY_MS;
    const uploaded = await this.#expireOf(accountId, unusedSince);
    const fetched = caller.operator ? await this.pruneFetched(unusedSince - START_GRACE_MS) : [];
    const removed = [...uploaded.map(({ image }) => image), ...fetched];
    for (const image of removed) await this.#audit(caller, 'delete', image);
    return {
      removed,
      kept: (await this.#imagesOf(accountId)).map(({ image }) => image),
    };
  }

  async pruneFetched(unusedSince: number): Promise<string[]> {
    const accounts = await this.#context.store.accounts.list();
    const used = await Promise.all(accounts.map(({ id }) => this.#imagesToKeep(id)));
    return (await this.#options.pruneFetched?.(unusedSince, new Set(used.flatMap((of) => [...of])))) ?? [];
  }

  async #expireOf(accountId: string, uploadedBefore: number): Promise<Image[]> {
    const old = await this.#uploadedBefore(accountId, uploadedBefore);
    if (old.length === 0) return [];
    const used = await this.#imagesToKeep(accountId);
    const unused = old.filter(({ image }) => !used.has(image));
    for (const { name, digest } of unused)
      await this.#removeSnapshot(qualifiedImageName(accountId, name), digest);
    return unused;
  }

  /** Those in use, and those that an endpoint can be rolled back to. */
  async #imagesToKeep(accountId: string): Promise<Set<string>> {
    return new Set([...(await this.#imagesInUse(accountId)), ...(await this.#releasedImages(accountId))]);
  }

  async #uploadedBefore(accountId: string, time: number): Promise<Image[]> {
    const old = (await this.#imagesOf(accountId)).filter(({ createdAt }) => createdAt < time);
    const again = await Promise.all(
      old.map(({ name, digest }) =>
        this.#snapshots.uploadedAgainAt(qualifiedImageName(accountId, name), digest),
      ),
    );
    return old.filter((_, index) => (again[index] ?? 0) < time);
  }

  async #releasedImages(accountId: string): Promise<string[]> {
    const { endpoints, workers } = this.#context.store;
    const releases = await Promise.all(
      (await endpoints.list(accountId)).map(({ id }) => workers.listReleases(id, { limit: RELEASES_KEPT })),
    );
    return releases.flat().map(({ endpoint }) => endpoint.image);
  }

  async #removeSnapshot(name: string, digest: string): Promise<void> {
    await this.#options.shared?.remove({ name, digest });
    await this.#snapshots.remove(name, digest, this.#context.ids.resource());
  }

  /** Images are files, not rows, so their audit entries are not part of another write. */
  async #audit(
    caller: Caller,
    action: AuditedAction,
    image: string,
    changes: FieldChange[] = [],
  ): Promise<void> {
    await this.#context.store.audit.record(
      auditEntry(this.#context, caller, action, RESOURCE, image, changes),
    );
  }

  async #imagesOf(accountId: string): Promise<Image[]> {
    const names = await this.#snapshots.names();
    return (await Promise.all(names.map((name) => this.#imagesNamed(accountId, name)))).flat();
  }

  async #imagesNamed(accountId: string, qualifiedName: string): Promise<Image[]> {
    const name = unqualifiedImageName(accountId, qualifiedName);
    return name === undefined
      ? []
      : (await this.#snapshots.list(qualifiedName)).map((snapshot) => toImage(accountId, name, snapshot));
  }

  async #imagesInUse(accountId: string): Promise<Set<string>> {
    const { store } = this.#context;
    const [endpoints, templates, pods, others] = await Promise.all([
      store.endpoints.list(accountId),
      store.templates.list(accountId),
      store.pods.list(accountId),
      this.#options.otherImagesInUse?.(accountId) ?? [],
    ]);
    return new Set([
      ...endpoints.map(({ image }) => image),
      ...templates.map(({ image }) => image),
      ...pods.map(({ image }) => image),
      ...others,
    ]);
  }
}

function toImage(accountId: string, name: string, snapshot: Snapshot): Image {
  return { name, image: localImageReference(accountId, name, snapshot.digest), ...snapshot };
}
