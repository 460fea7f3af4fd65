import { createHmac, timingSafeEqual } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import type { Clock } from '../../support/clock.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import type { ArtifactFiles } from './artifact-files.ts';

/** The largest build that the Flash client allows. */
export const MAX_ARTIFACT_BYTES = 1500 * 1024 * 1024;
const LINK_TTL_MS = 60 * 60 * 1000;

export interface FlashArtifactsOptions {
  files: ArtifactFiles;
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

  put(objectKey: string, content: Readable, nonce: string): Promise<void> {
    return this.#options.files.put(objectKey, limitBytes(content), nonce);
  }

  size(objectKey: string): Promise<number | undefined> {
    return this.#options.files.size(objectKey);
  }

  async read(objectKey: string): Promise<Readable> {
    return createReadStream(await this.file(objectKey));
  }

  /** The path of the file, for processes on this machine. */
  async file(objectKey: string): Promise<string> {
    const found = await this.#options.files.file(objectKey);
    if (found === undefined) throw notFound('file', objectKey);
    return found;
  }

  removeAll(prefix: string): Promise<void> {
    return this.#options.files.removeAll(prefix);
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
