import type { CloudEventBus } from '../domain/events.ts';
import type { S3Key } from '../domain/records.ts';
import { S3_ACCESS_ID_PREFIX } from '../domain/s3-names.ts';
import type { S3KeyStore } from '../store/store.ts';
import { type Clock, wallNow } from '../support/clock.ts';
import { KeyCache } from './key-cache.ts';

/** Longer texts are not access ids of this server and are not looked up. */
const MAX_ACCESS_ID_LENGTH = 64;
const MAX_CACHED_KEYS = 1_000;

export interface S3Credential {
  key: S3Key;
  secret: string;
}

export interface S3CredentialsDeps {
  store: { s3Keys: S3KeyStore };
  clock: Clock;
  events: CloudEventBus;
}

/** S3 keys with their secrets, for checking signatures. */
export class S3Credentials {
  readonly #clock: Clock;
  readonly #cache: KeyCache<S3Credential>;

  constructor({ store, clock, events }: S3CredentialsDeps) {
    this.#clock = clock;
    this.#cache = new KeyCache({
      clock,
      maxEntries: MAX_CACHED_KEYS,
      load: async (accessId) =>
        accessId.length > MAX_ACCESS_ID_LENGTH || !accessId.startsWith(S3_ACCESS_ID_PREFIX)
          ? undefined
          : store.s3Keys.findWithSecret(accessId),
      saveLastUsed: (times) => store.s3Keys.saveLastUsed(times),
    });
    events.subscribe('keys.changed', () => this.#cache.invalidate());
  }

  /** Undefined if the access id is unknown, or its key was revoked or has expired. */
  async find(accessId: string): Promise<S3Credential | undefined> {
    const found = await this.#cache.find(accessId);
    return found === undefined ||
      (found.key.expiresAt !== null && wallNow(this.#clock) >= found.key.expiresAt)
      ? undefined
      : found;
  }

  /** Called for each request whose signature was correct. */
  recordUse(key: S3Key): void {
    this.#cache.recordUse(key);
  }

  saveLastUsed(): Promise<void> {
    return this.#cache.saveLastUsed();
  }
}
