import { createHmac, timingSafeEqual } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';

/** The largest build that the Flash client allows. */
export const MAX_ARTIFACT_BYTES = 1500 * 1024 * 1024;
const LINK_TTL_MS = 60 * 60 * 1000;

export interface FlashArtifactsOptions {
  folder: string;
  masterKey: Buffer;
  clock: Clock;
  /** Called each time: a server on a free port knows its address only after it listens. */
  origin(): string;
}

export interface ArtifactLink {
  url: string;
  expiresAt: number;
}

type Method = 'GET' | 'PUT';

/** Files that are uploaded and downloaded with a signed link: it allows one operation, for an hour. */
export class FlashArtifacts {
  readonly #options: FlashArtifactsOptions;
  readonly #key: Buffer;

  constructor(options: FlashArtifactsOptions) {
    this.#options = options;
    this.#key = createHmac('sha256', options.masterKey).update('links to artifacts').digest();
  }

  link(method: Method, objectKey: string): ArtifactLink {
    const expiresAt = this.#options.clock.now() + LINK_TTL_MS;
    const signature = this.#sign(method, objectKey, expiresAt);
    const query = `expires=${expiresAt}&signature=${signature}`;
    return { url: `${this.#options.origin()}/artifacts/${objectKey}?${query}`, expiresAt };
  }

  /**
   * Throws if the link was not signed here for this operation or has expired. Only signed keys become paths.
   */
  verifyLink(method: Method, objectKey: string, expires: string, signature: string): void {
    const wanted = Buffer.from(this.#sign(method, objectKey, Number(expires)));
    const shown = Buffer.from(signature);
    if (shown.length !== wanted.length || !timingSafeEqual(shown, wanted))
      throw new BerthError('forbidden', 'this link is not valid');
    if (Number(expires) < this.#options.clock.now())
      throw new BerthError('forbidden', 'this link has expired; request a new one');
  }

  /** The file appears only when it is complete. `nonce` keeps two uploads of one key apart. */
  async put(objectKey: string, content: Readable, nonce: string): Promise<void> {
    const file = this.#path(objectKey);
    const part = `${file}.${nonce}.part`;
    await mkdir(dirname(file), { recursive: true });
    try {
      await pipeline(content, limitBytes, createWriteStream(part));
      await rename(part, file);
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
  }

  async size(objectKey: string): Promise<number | undefined> {
    return (await stat(this.#path(objectKey)).catch(() => undefined))?.size;
  }

  read(objectKey: string): Readable {
    return createReadStream(this.#path(objectKey));
  }

  /** The path of the file, for processes on this machine. */
  file(objectKey: string): string {
    return this.#path(objectKey);
  }

  async removeAll(prefix: string): Promise<void> {
    await rm(this.#path(prefix), { recursive: true, force: true });
  }

  #path(objectKey: string): string {
    return join(this.#options.folder, objectKey);
  }

  #sign(method: Method, objectKey: string, expiresAt: number): string {
    return createHmac('sha256', this.#key).update(`${method}\n${objectKey}\n${expiresAt}`).digest('hex');
  }
}

async function* limitBytes(content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of content) {
    bytes += chunk.length;
    if (bytes > MAX_ARTIFACT_BYTES) throw artifactTooLargeError(bytes);
    yield chunk;
  }
}

export function artifactTooLargeError(bytes: number): BerthError {
  return new BerthError(
    'too-large',
    `the build has at least ${bytes} bytes; the maximum is ${MAX_ARTIFACT_BYTES}`,
  );
}
