import { setTimeout as sleep } from 'node:timers/promises';
import type { AcmeStore } from '../../../store/acme-store.ts';
import { wallNow } from '../../../support/clock.ts';
import type { Clock } from '../../../support/clock.ts';
import type { Log } from '../../../support/log.ts';
import { readCertificatePair } from '../certificate-pair.ts';
import type { CertificatePair } from '../certificate-pair.ts';
import type { CertificateSource } from '../certificate-source.ts';

/** How often the stored certificate is read: another server may have renewed it. */
const CHECK_INTERVAL_MS = 30_000;
/** Authorities allow five failures per name and hour. */
const FIRST_RETRY_MS = 120_000;
const MAX_RETRY_MS = 2 * 3_600_000;
/** Renewed when less than this part of its life is left. */
const RENEWAL_SHARE = 1 / 3;

export interface AcmeCertificatesDeps {
  directory: string;
  email: string;
  domains: readonly string[];
  store: AcmeStore;
  clock: Clock;
  log: Log;
}

/**
 * The certificate of the installation by ACME. It is in the store: all servers use it, and the leader
 * orders and renews it. The challenge may reach any server, so its answer is in the store as well.
 */
export class AcmeCertificates implements CertificateSource {
  readonly #deps: AcmeCertificatesDeps;
  readonly #listeners: ((pair: CertificatePair) => void)[] = [];
  #current: CertificatePair | undefined;
  #isLeading = false;
  #timer: NodeJS.Timeout | undefined;
  #checking: Promise<void> = Promise.resolve();
  readonly #closing = new AbortController();
  #failures = 0;
  #retryAt = 0;

  constructor(deps: AcmeCertificatesDeps) {
    this.#deps = deps;
  }

  get current(): CertificatePair | undefined {
    return this.#current;
  }

  set isLeading(leading: boolean) {
    this.#isLeading = leading;
    if (leading) void this.check();
  }

  onChange(listener: (pair: CertificatePair) => void): void {
    this.#listeners.push(listener);
  }

  challengeAnswer(token: string): Promise<string | undefined> {
    return this.#deps.store.findChallenge(token);
  }

  start(): void {
    this.#timer = setInterval(() => void this.check(), CHECK_INTERVAL_MS).unref();
    void this.check();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#closing.abort();
    await this.#checking;
  }

  /**
   * Reads the stored certificate, and renews it where this server leads and it is time. Checks follow each other:
   * an order ends with the removal of all challenges, those of another order too.
   */
  check(): Promise<void> {
    this.#checking = this.#checking.then(() => this.#check());
    return this.#checking;
  }

  async #check(): Promise<void> {
    const { store, clock, log, domains, directory } = this.#deps;
    try {
      await this.#load();
      const now = wallNow(clock);
      if (!this.#isLeading || now < this.#retryAt || !needsRenewal(this.#current, domains, now)) return;
      log.info({ domains, directory }, 'a certificate is ordered');
      // Loaded on first use: it is needed once in two months.
      const { orderCertificate } = await import('./order-certificate.ts');
      const wait = (milliseconds: number): Promise<void> =>
        sleep(milliseconds, undefined, { signal: this.#closing.signal });
      await store.saveCertificate(await orderCertificate({ ...this.#deps, wait }));
      this.#failures = 0;
      await this.#load();
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#failed(error);
    }
  }

  async #load(): Promise<void> {
    const { store, clock, domains, log } = this.#deps;
    const stored = await store.findCertificate();
    if (stored === undefined || stored.certificate === this.#current?.certificate) return;
    const source = { certificate: 'the database', key: 'the database' };
    let pair: CertificatePair;
    try {
      pair = readCertificatePair(stored.certificate, stored.key, wallNow(clock), source);
    } catch (error) {
      // An expired one is replaced, as if there were none.
      return log.warn({ err: error }, 'the stored certificate is not used');
    }
    this.#current = pair;
    log.info({ names: pair.names, validTo: new Date(pair.validTo).toISOString() }, 'a certificate is in use');
    if (!coversAll(pair, domains))
      log.warn({ domains }, 'the certificate is not for all names of this server');
    for (const listener of this.#listeners) listener(pair);
  }

  #failed(error: unknown): void {
    const { clock, log } = this.#deps;
    const pause = Math.min(FIRST_RETRY_MS * 2 ** this.#failures, MAX_RETRY_MS);
    this.#failures += 1;
    this.#retryAt = wallNow(clock) + pause;
    log.error(
      { err: error, retryInSeconds: pause / 1000, validTo: this.#current && new Date(this.#current.validTo) },
      'no certificate could be got; another attempt follows',
    );
  }
}

/** Without a certificate, with one for other names, or with less than a third of its life left. */
export function needsRenewal(
  pair: CertificatePair | undefined,
  domains: readonly string[],
  now: number,
): boolean {
  if (pair === undefined || !coversAll(pair, domains)) return true;
  return pair.validTo - now < (pair.validTo - pair.validFrom) * RENEWAL_SHARE;
}

function coversAll({ names }: CertificatePair, domains: readonly string[]): boolean {
  return domains.every((domain) => names.includes(domain.toLowerCase()));
}
