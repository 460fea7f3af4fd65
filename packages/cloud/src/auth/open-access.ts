import type { CloudEventBus } from '../domain/events.ts';
import { type Clock, wallNow } from '../support/clock.ts';
import { BerthError } from '../support/errors.ts';
import { isAccessError } from './authenticator.ts';

/** A key that expires is noticed this much later at most: there is no event for it. */
const EXPIRY_CHECK_MS = 400;
/** Everything is checked this often too: the announcement of another server may be lost. */
const FULL_CHECK_MS = 20_000;
/** How many keys are read from the store at a time. */
const MAX_CONCURRENT_CHECKS = 16;

/** What a check says about access that continues. */
export interface GrantedAccess {
  /** When the key expires; null or undefined: never. */
  readonly expiresAt?: number | null;
}

/**
 * Something that stays open after its request was authorized: an answer, an upload, a terminal, a worker
 * channel.
 */
export interface OpenAccess {
  /** The key or token. What shares it is checked together. */
  readonly credential: string;
  /** When the key expires, as far as is known now. */
  expiresAt: number | null;
  /** Rejects if access is lost. Any other failure leaves it open. */
  authorize(): Promise<GrantedAccess>;
  /** Ends it. Called once, with what the key may not do any more. */
  revoke(error: BerthError): void;
}

export interface OpenAccessesDeps {
  events: CloudEventBus;
  clock: Clock;
}

/**
 * Ends what is open when its key is revoked, loses a scope or expires. Every key is checked again when keys
 * change, on this server or on another one, and when its time is over.
 */
export class OpenAccesses {
  readonly #clock: Clock;
  readonly #open = new Map<string, Set<OpenAccess>>();
  readonly #expiring = new Set<OpenAccess>();
  readonly #unsubscribe: () => void;
  readonly #fullCheck: NodeJS.Timeout;
  #expiryCheck: NodeJS.Timeout | undefined;
  #checking: Promise<void> | undefined;
  #checkAgain = false;

  constructor({ events, clock }: OpenAccessesDeps) {
    this.#clock = clock;
    this.#unsubscribe = events.subscribe('keys.changed', () => this.#checkAll());
    this.#fullCheck = setInterval(() => this.#checkAll(), FULL_CHECK_MS).unref();
  }

  /** How many are open. */
  get size(): number {
    let size = 0;
    for (const group of this.#open.values()) size += group.size;
    return size;
  }

  /** Returns the function that ends the watch, which is called when the access is no longer used. */
  watch(access: OpenAccess): () => void {
    let group = this.#open.get(access.credential);
    if (group === undefined) this.#open.set(access.credential, (group = new Set()));
    group.add(access);
    this.#watchExpiry(access);
    return () => this.#remove(access);
  }

  /** Checks one now: its key may have been revoked between its authorization and the watch. */
  check(access: OpenAccess): void {
    void this.#check(access);
  }

  close(): void {
    this.#unsubscribe();
    clearInterval(this.#fullCheck);
    clearInterval(this.#expiryCheck);
  }

  #remove(access: OpenAccess): boolean {
    const group = this.#open.get(access.credential);
    if (group?.delete(access) !== true) return false;
    if (group.size === 0) this.#open.delete(access.credential);
    if (this.#expiring.delete(access) && this.#expiring.size === 0) {
      clearInterval(this.#expiryCheck);
      this.#expiryCheck = undefined;
    }
    return true;
  }

  #watchExpiry(access: OpenAccess): void {
    if (access.expiresAt === null) return;
    this.#expiring.add(access);
    this.#expiryCheck ??= setInterval(() => this.#checkExpired(), EXPIRY_CHECK_MS).unref();
  }

  #checkExpired(): void {
    const now = wallNow(this.#clock);
    for (const access of this.#expiring)
      if (access.expiresAt !== null && access.expiresAt <= now) void this.#check(access);
  }

  /** Changes that arrive during a check share the next one. */
  #checkAll(): void {
    if (this.#checking !== undefined) {
      this.#checkAgain = true;
      return;
    }
    this.#checking = this.#checkGroups().finally(() => {
      this.#checking = undefined;
      if (!this.#checkAgain) return;
      this.#checkAgain = false;
      this.#checkAll();
    });
  }

  async #checkGroups(): Promise<void> {
    const groups = [...this.#open.values()].values();
    const checkNext = async (): Promise<void> => {
      // One after the other, so that a key that many share is read once.
      for (const group of groups) for (const access of [...group]) await this.#check(access);
    };
    await Promise.all(Array.from({ length: MAX_CONCURRENT_CHECKS }, checkNext));
  }

  async #check(access: OpenAccess): Promise<void> {
    // It may have ended while others were checked.
    if (this.#open.get(access.credential)?.has(access) !== true) return;
    try {
      access.expiresAt = (await access.authorize()).expiresAt ?? null;
      if (this.#open.get(access.credential)?.has(access) === true) this.#watchExpiry(access);
    } catch (error) {
      if (isLost(error) && this.#remove(access)) access.revoke(error);
    }
  }
}

/** If that cannot be found out, the access stays: the next check decides. */
function isLost(error: unknown): error is BerthError {
  return error instanceof BerthError && (isAccessError(error) || error.code === 'not-found');
}
