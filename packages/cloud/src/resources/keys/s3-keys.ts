import type { S3Key } from '../../domain/records.ts';
import { BerthError, notFound, ruleError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import { checkKeyName } from './api-keys.ts';

const RESOURCE = 'S3 key';
/** Existing tools know the two halves of an S3 key by these beginnings. */
export const S3_ACCESS_ID_PREFIX = 'user_';
const SECRET_PREFIX = 'rps_';
const ACCESS_ID_LENGTH = 24;
const SECRET_LENGTH = 44;
/** Longer texts are no ids of ours and are not worth looking for. */
const MAX_ACCESS_ID_LENGTH = 64;
/** How exact "last used" is. */
const LAST_USED_RESOLUTION_MS = 60_000;
/** A key that was looked up is remembered this long at most; a change on this server, or one that another tells of, ends that at once. */
const CACHE_TTL_MS = 1_000;
const MAX_CACHED_KEYS = 1_000;

export interface NewS3Key {
  name: string;
  access: S3Key['access'];
  expiresAt?: number | null;
}

interface S3Credential {
  key: S3Key;
  secret: string;
}

/** Keys that sign requests for the objects of network volumes. */
export class S3Keys {
  readonly #context: ResourceContext;
  readonly #changed: () => void;
  readonly #lastUsed = new Map<string, number>();
  readonly #remembered = new Map<string, S3Credential & { at: number }>();
  #changes = 0;

  /** `changed` is told when a key is gone. */
  constructor(context: ResourceContext, changed: () => void = () => undefined) {
    this.#context = context;
    this.#changed = changed;
  }

  /** The secret is in this answer and in no other. */
  async create(
    caller: Caller,
    { name, access, expiresAt = null }: NewS3Key,
    accountId = caller.accountId,
  ): Promise<{ record: S3Key; secret: string }> {
    const { store, clock, ids } = this.#context;
    await this.#checkManager(caller, accountId);
    checkKeyName(name);
    if (expiresAt !== null && expiresAt <= clock.now()) throw ruleError('the expiry must be in the future');
    const record: S3Key = {
      id: S3_ACCESS_ID_PREFIX + ids.resource(ACCESS_ID_LENGTH),
      accountId,
      name,
      access,
      createdAt: clock.now(),
      lastUsedAt: null,
      expiresAt,
    };
    const secret = SECRET_PREFIX + ids.resource(SECRET_LENGTH);
    await store.s3Keys.insert(
      record,
      secret,
      auditEntry(this.#context, caller, 'create', RESOURCE, record.id, [], accountId),
    );
    return { record, secret };
  }

  async list(caller: Caller, accountId = caller.accountId): Promise<S3Key[]> {
    if (accountId !== caller.accountId) await this.#checkManager(caller, accountId);
    return this.#context.store.s3Keys.list(accountId);
  }

  /** Holds from the next request on. */
  async revoke(caller: Caller, id: string): Promise<void> {
    const { store } = this.#context;
    const accountId = (await store.s3Keys.findWithSecret(id))?.key.accountId;
    if (accountId === undefined || (accountId !== caller.accountId && !caller.operator))
      throw notFound(RESOURCE, id);
    await this.#checkManager(caller, accountId);
    if (
      !(await store.s3Keys.remove(
        accountId,
        id,
        auditEntry(this.#context, caller, 'revoke', RESOURCE, id, [], accountId),
      ))
    )
      throw notFound(RESOURCE, id);
    this.invalidateCache();
    this.#changed();
  }

  /** The key behind an access id, with what its signatures are made with; undefined where it is unknown, revoked or expired. */
  async findCredential(id: string): Promise<S3Credential | undefined> {
    const now = this.#context.clock.now();
    const opened = this.#recall(id, now) ?? (await this.#look(id, now));
    return opened === undefined || (opened.key.expiresAt !== null && now >= opened.key.expiresAt)
      ? undefined
      : opened;
  }

  /** A request was signed well. */
  recordUse({ id, lastUsedAt }: S3Key): void {
    const now = this.#context.clock.now();
    if (now - (this.#lastUsed.get(id) ?? lastUsedAt ?? 0) >= LAST_USED_RESOLUTION_MS)
      this.#lastUsed.set(id, now);
  }

  /** Writes down when keys were last used. Called now and then, and at the end. */
  async saveLastUsed(): Promise<void> {
    if (this.#lastUsed.size === 0) return;
    const uses = new Map(this.#lastUsed);
    this.#lastUsed.clear();
    await this.#context.store.s3Keys.saveLastUsed(uses);
  }

  /** Keys have changed: the next request looks again. */
  invalidateCache(): void {
    this.#remembered.clear();
    this.#changes += 1;
  }

  #recall(id: string, now: number): S3Credential | undefined {
    const remembered = this.#remembered.get(id);
    return remembered !== undefined && Math.abs(now - remembered.at) < CACHE_TTL_MS ? remembered : undefined;
  }

  async #look(id: string, now: number): Promise<S3Credential | undefined> {
    if (id.length > MAX_ACCESS_ID_LENGTH || !id.startsWith(S3_ACCESS_ID_PREFIX)) return undefined;
    const changes = this.#changes;
    const opened = await this.#context.store.s3Keys.findWithSecret(id);
    if (opened === undefined || changes !== this.#changes) return opened;
    if (this.#remembered.size >= MAX_CACHED_KEYS) this.#remembered.clear();
    this.#remembered.set(id, { ...opened, at: now });
    return opened;
  }

  async #checkManager(caller: Caller, accountId: string): Promise<void> {
    if (!caller.fullAccess) throw new BerthError('forbidden', 'only a key with full access may manage keys');
    if (accountId === caller.accountId) return;
    if (!caller.operator || (await this.#context.store.accounts.find(accountId)) === undefined)
      throw notFound('account', accountId);
  }
}
