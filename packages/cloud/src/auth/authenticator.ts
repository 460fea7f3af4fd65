import type { ApiKey } from '../domain/records.ts';
import { hashApiKey } from '../support/crypto.ts';
import { BerthError } from '../support/errors.ts';
import { type Caller, ROOT_ACCOUNT_ID } from '../domain/caller.ts';
import type { ResourceContext } from '../resources/resource-context.ts';
import type { PodTokens } from './pod-tokens.ts';
import { scopeLevelOf, isKeyActive, permits } from './scopes.ts';
import type { ScopeName, AccessMode } from './scopes.ts';

/** Longer texts are no keys of ours and are not worth hashing. */
const MAX_API_KEY_LENGTH = 512;
/** How exact "last used" is; a write for every request would cost more than it tells. */
const LAST_USED_RESOLUTION_MS = 60_000;
/** A key that was looked up is remembered this long at most; a change on this server, or one that another tells of, ends that at once. */
const CACHE_TTL_MS = 1_000;
const MAX_CACHED_KEYS = 10_000;

export const POD_ACCESS_DENIED =
  'access denied: with its own key a pod can look at itself, stop, restart and terminate itself, and nothing else';

export interface AccessRequest {
  interface: Caller['interface'];
  scope: ScopeName;
  mode: AccessMode;
  requestId: string;
  endpointId?: string;
  /** The pod that is asked about, where a pod's own token may do so; `any` where that is found out later. */
  podId?: string;
}

/** Whoever asks may not, whatever they do. Other failures may pass. */
export function isAccessError(error: unknown): boolean {
  return error instanceof BerthError && (error.code === 'unauthenticated' || error.code === 'forbidden');
}

/** Where a request says later which pod it is about. */
export const ANY_POD = 'any';

/** Knows who is at the door and what they may do. */
export class Authenticator {
  readonly #context: ResourceContext;
  readonly #podTokens: PodTokens | undefined;
  readonly #lastUsed = new Map<string, number>();
  readonly #remembered = new Map<string, { record: ApiKey; at: number }>();
  /** How often keys have changed. What was looked up before a change and arrives after it is not remembered. */
  #changes = 0;
  readonly #watchers = new Set<() => void>();

  constructor(context: ResourceContext, podTokens?: PodTokens) {
    this.#context = context;
    this.#podTokens = podTokens;
  }

  /** Who holds this key. A missing, wrong, expired, disabled or revoked one is answered alike. */
  async authenticate(key: string | undefined): Promise<ApiKey> {
    if (key === undefined || key === '') throw new BerthError('unauthenticated', 'missing bearer token');
    const now = this.#context.clock.now();
    const found = this.#recall(key, now) ?? (await this.#look(key, now));
    if (found === undefined || !isKeyActive(found, now))
      throw new BerthError('unauthenticated', 'invalid API key');
    this.#noteUse(found, now);
    return found;
  }

  /** The same where it was asked a moment ago, without waiting; else undefined. */
  authenticateFromCache(key: string | undefined): ApiKey | undefined {
    if (key === undefined) return undefined;
    const now = this.#context.clock.now();
    const found = this.#recall(key, now);
    if (found === undefined || !isKeyActive(found, now)) return undefined;
    this.#noteUse(found, now);
    return found;
  }

  /** Keys have changed: the next request looks again. */
  invalidateCache(): void {
    this.#remembered.clear();
    this.#changes += 1;
    for (const watcher of [...this.#watchers]) watcher();
  }

  /** Tells whenever keys have changed, for whoever lets somebody in for longer than one request. Answers the way to stop it. */
  onKeysChanged(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  #noteUse({ id, lastUsedAt }: ApiKey, now: number): void {
    if (now - (this.#lastUsed.get(id) ?? lastUsedAt ?? 0) >= LAST_USED_RESOLUTION_MS)
      this.#lastUsed.set(id, now);
  }

  #recall(key: string, now: number): ApiKey | undefined {
    const remembered = this.#remembered.get(key);
    return remembered !== undefined && Math.abs(now - remembered.at) < CACHE_TTL_MS
      ? remembered.record
      : undefined;
  }

  async #look(key: string, now: number): Promise<ApiKey | undefined> {
    if (key.length > MAX_API_KEY_LENGTH) return undefined;
    const changes = this.#changes;
    const record = await this.#context.store.keys.findByHash(hashApiKey(key));
    if (record === undefined || changes !== this.#changes) return record;
    if (this.#remembered.size >= MAX_CACHED_KEYS) this.#remembered.clear();
    this.#remembered.set(key, { record, at: now });
    return record;
  }

  /** `known` hears who it is before it is asked whether they may: also a refusal counts as a call of theirs. */
  async authorize(
    key: string | undefined,
    visit: AccessRequest,
    known: (caller: Caller) => void = () => undefined,
  ): Promise<Caller> {
    const podId = this.#podTokens?.podIdFromToken(key);
    if (podId !== undefined) return this.#admitPod(podId, visit, known);
    const record = await this.authenticate(key);
    const caller = callerOf(record, visit);
    known(caller);
    checkScope(record, visit);
    return caller;
  }

  /** A pod that acts on itself. */
  async #admitPod(podId: string, visit: AccessRequest, known: (caller: Caller) => void): Promise<Caller> {
    const pod = await this.#context.store.pods.findInAnyAccount(podId);
    if (pod === undefined || pod.wanted === 'terminated')
      throw new BerthError('unauthenticated', 'invalid API key');
    const caller: Caller = {
      accountId: pod.accountId,
      keyId: `pod:${podId}`,
      operator: false,
      fullAccess: false,
      podId,
      interface: visit.interface,
      requestId: visit.requestId,
    };
    known(caller);
    if (visit.podId !== podId && visit.podId !== ANY_POD)
      throw new BerthError('forbidden', POD_ACCESS_DENIED);
    return caller;
  }

  /** Writes down when keys were last used. Called now and then, and at the end. */
  async saveLastUsed(): Promise<void> {
    if (this.#lastUsed.size === 0) return;
    const uses = new Map(this.#lastUsed);
    this.#lastUsed.clear();
    await this.#context.store.keys.saveLastUsed(uses);
  }
}

export function checkScope(
  record: ApiKey,
  { scope, mode, endpointId }: Pick<AccessRequest, 'scope' | 'mode' | 'endpointId'>,
): void {
  if (!permits(scopeLevelOf(record, scope, endpointId), mode))
    throw new BerthError('forbidden', `access denied: this key may not ${mode} through this interface`);
}

function callerOf(key: ApiKey, visit: Pick<AccessRequest, 'interface' | 'requestId'>): Caller {
  const fullAccess = key.access === 'all';
  return {
    accountId: key.accountId,
    keyId: key.id,
    operator: fullAccess && key.accountId === ROOT_ACCOUNT_ID,
    fullAccess,
    interface: visit.interface,
    requestId: visit.requestId,
  };
}
