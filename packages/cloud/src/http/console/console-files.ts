import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

const TYPES: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
  '.map': 'application/json',
};
/** The names that the build gives: a hash is part of each, so a name never means something else later. */
const ASSET_NAME = /^[\w-]+(?:\.[\w-]+)*\.(?:js|css|svg|png|woff2)$/;

export interface ConsoleFile {
  body: Buffer;
  type: string;
  /** `br` or `gzip` if the body is compressed. */
  encoding?: string;
}

/** The built console. Files are read when they are first asked for, and kept. */
export class ConsoleFiles {
  readonly #folder: string;
  readonly #cache = new Map<string, ConsoleFile>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The one page. Undefined if the console was not built. */
  page(): { body: Buffer; tag: string } | undefined {
    const file = join(this.#folder, 'index.html');
    if (!existsSync(file)) return undefined;
    const body = readFileSync(file);
    return { body, tag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` };
  }

  asset(name: string, accepted: string): ConsoleFile | undefined {
    if (!ASSET_NAME.test(name)) return undefined;
    const encoding = /\bbr\b/.test(accepted) ? 'br' : /\bgzip\b/.test(accepted) ? 'gzip' : undefined;
    const suffix = encoding === 'br' ? '.br' : encoding === 'gzip' ? '.gz' : '';
    return (
      (suffix === '' ? undefined : this.#read(name, suffix, encoding)) ?? this.#read(name, '', undefined)
    );
  }

  #read(name: string, suffix: string, encoding: string | undefined): ConsoleFile | undefined {
    const cached = this.#cache.get(name + suffix);
    if (cached !== undefined) return cached;
    const file = join(this.#folder, 'assets', name + suffix);
    if (!existsSync(file)) return undefined;
    const found: ConsoleFile = {
      body: readFileSync(file),
      type: TYPES[extname(name)] ?? 'application/octet-stream',
      ...(encoding !== undefined && { encoding }),
    };
    this.#cache.set(name + suffix, found);
    return found;
  }
}
