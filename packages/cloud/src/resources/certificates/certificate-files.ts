import { readFile } from 'node:fs/promises';
import { wallNow } from '../../support/clock.ts';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import { CertificateError, readCertificatePair } from './certificate-pair.ts';
import type { CertificatePair } from './certificate-pair.ts';
import type { CertificateSource } from './certificate-source.ts';

/**
 * Content is compared, not file times: a mounted secret is a link that is moved, and some disks report no
 * events.
 */
const CHECK_INTERVAL_MS = 2_000;

export interface CertificateFilesDeps {
  certificate: string;
  key: string;
  clock: Clock;
  log: Log;
}

/**
 * The certificate in two files of the operator. A new pair is used as soon as both files fit; until then the
 * old one stays.
 */
export class CertificateFiles implements CertificateSource {
  readonly #deps: CertificateFilesDeps;
  readonly #listeners: ((pair: CertificatePair) => void)[] = [];
  #current: CertificatePair;
  /** The content that was last refused, so that it is reported once. */
  #refused = '';
  #timer: NodeJS.Timeout | undefined;
  #checking: Promise<void> = Promise.resolve();

  private constructor(deps: CertificateFilesDeps, current: CertificatePair) {
    this.#deps = deps;
    this.#current = current;
  }

  /** Rejects with the reason where the pair cannot be used. */
  static async open(deps: CertificateFilesDeps): Promise<CertificateFiles> {
    try {
      return new CertificateFiles(deps, checkPair(deps, ...(await readFiles(deps))));
    } catch (cause) {
      throw new BerthError('unavailable', `HTTPS is not possible: ${reasonOf(cause)}`, { cause });
    }
  }

  get current(): CertificatePair {
    return this.#current;
  }

  onChange(listener: (pair: CertificatePair) => void): void {
    this.#listeners.push(listener);
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#checking = this.check();
    }, CHECK_INTERVAL_MS).unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#checking;
  }

  /** Reads the files again. */
  async check(): Promise<void> {
    let seen = 'unreadable';
    try {
      const [certificate, key] = await readFiles(this.#deps);
      if (certificate === this.#current.certificate && key === this.#current.key) return;
      seen = `${certificate}\n${key}`;
      this.#use(checkPair(this.#deps, certificate, key));
    } catch (error) {
      if (seen === this.#refused) return;
      this.#refused = seen;
      this.#deps.log.error(
        { validTo: new Date(this.#current.validTo).toISOString() },
        `the new certificate is not used, the old one stays: ${reasonOf(error)}`,
      );
    }
  }

  #use(pair: CertificatePair): void {
    this.#current = pair;
    this.#refused = '';
    this.#deps.log.info(
      { names: pair.names, validTo: new Date(pair.validTo).toISOString() },
      'a new certificate is in use',
    );
    for (const listener of this.#listeners) listener(pair);
  }
}

async function readFiles({ certificate, key }: CertificateFilesDeps): Promise<[string, string]> {
  return Promise.all([readFile(certificate, 'utf8'), readFile(key, 'utf8')]);
}

function checkPair(files: CertificateFilesDeps, certificate: string, key: string): CertificatePair {
  return readCertificatePair(certificate, key, wallNow(files.clock), files);
}

function reasonOf(error: unknown): string {
  if (error instanceof CertificateError) return error.message;
  const { code, path, message } = error as NodeJS.ErrnoException;
  return code === undefined ? message : `${path ?? 'a file'} cannot be read (${code})`;
}
