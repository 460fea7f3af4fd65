import { POD_ACCESS_DENIED, ROOT_ACCOUNT_ID } from '../domain/caller.ts';
import type { Caller } from '../domain/caller.ts';
import type { CloudEventBus } from '../domain/events.ts';
import type { ApiKey } from '../domain/records.ts';
import { isSessionToken } from '../domain/session.ts';
import type { PodStore } from '../store/pod-store.ts';
import type { ApiKeyStore } from '../store/store.ts';
import { type Clock, wallNow } from '../support/clock.ts';
import { hashApiKey } from '../support/crypto.ts';
import { BerthError } from '../support/errors.ts';
import { KeyCache } from './key-cache.ts';
import type { PodTokens } from './pod-tokens.ts';
import type { AuthenticatedKey, Sessions } from './sessions.ts';
import { isKeyActive, permits, scopeLevelOf } from './scopes.ts';
import type { AccessMode, ScopeName } from './scopes.ts';

/** Longer texts are not keys of this server and are not worth hashing. */
const MAX_API_KEY_LENGTH = 512;
const MAX_CACHED_KEYS = 10_000;

/** `podId` where the request names the pod later, in its body. */
export const ANY_POD = 'any';

export interface AccessRequest {
  interface: Caller['interface'];
  scope: ScopeName;
  mode: AccessMode;
  requestId: string;
  endpointId?: string;
  /** The pod that the request is about, if a pod's own token is allowed here. */
  podId?: string;
}

/** True if the caller is not allowed to do this. Any other error may be temporary. */
export function isAccessError(error: unknown): boolean {
  return error instanceof BerthError && (error.code === 'unauthenticated' || error.code === 'forbidden');
}

export interface AuthenticatorDeps {
  store: {
    keys: Pick<ApiKeyStore, 'findByHash' | 'saveLastUsed'>;
    pods: Pick<PodStore, 'findInAnyAccount'>;
  };
  clock: Clock;
  events: CloudEventBus;
}

/** Finds the owner of an API key, session or pod token, and checks what it may do. */
export class Authenticator {
  readonly #deps: AuthenticatorDeps;
  readonly #podTokens: PodTokens | undefined;
  readonly #keys: KeyCache<AuthenticatedKey>;

  constructor(deps: AuthenticatorDeps, podTokens?: PodTokens, sessions?: Pick<Sessions, 'findKey'>) {
    this.#deps = deps;
    this.#podTokens = podTokens;
    this.#keys = new KeyCache({
      clock: deps.clock,
      maxEntries: MAX_CACHED_KEYS,
      load: async (key) => {
        if (key.length > MAX_API_KEY_LENGTH) return undefined;
        return isSessionToken(key) ? sessions?.findKey(key) : deps.store.keys.findByHash(hashApiKey(key));
      },
      saveLastUsed: (times) => deps.store.keys.saveLastUsed(times),
    });
    deps.events.subscribe('keys.changed', () => this.#keys.invalidate());
  }

  /** The record of an API key. An unknown, expired, disabled or revoked key gets the same answer. */
  async authenticate(key: string | undefined): Promise<AuthenticatedKey> {
    if (key === undefined || key === '') throw new BerthError('unauthenticated', 'missing bearer token');
    const found = await this.#keys.find(key);
    if (found === undefined || !isKeyActive(found, wallNow(this.#deps.clock))) throw invalidKey();
    this.#keys.recordUse(found);
    return found;
  }

  /** Like `authenticate`, for a key that is cached; undefined for any other. Does not wait. */
  authenticateFromCache(key: string | undefined): ApiKey | undefined {
    const found = key === undefined ? undefined : this.#keys.findCached(key);
    if (found === undefined || !isKeyActive(found, wallNow(this.#deps.clock))) return undefined;
    this.#keys.recordUse(found);
    return found;
  }

  /**
   * `onAuthenticated` is called before scopes are checked: a request that is then refused counts towards the
   * rate limit too.
   */
  async authorize(
    key: string | undefined,
    request: AccessRequest,
    onAuthenticated: (caller: Caller) => void = () => undefined,
  ): Promise<Caller> {
    const podId = this.#podTokens?.podIdFromToken(key);
    if (podId !== undefined) return this.#authorizePod(podId, request, onAuthenticated);
    const record = await this.authenticate(key);
    const caller = callerOf(record, request);
    onAuthenticated(caller);
    checkScope(record, request);
    return caller;
  }

  /** A pod that acts on itself with its own token. */
  async #authorizePod(
    podId: string,
    request: AccessRequest,
    onAuthenticated: (caller: Caller) => void,
  ): Promise<Caller> {
    const pod = await this.#deps.store.pods.findInAnyAccount(podId);
    if (pod === undefined || pod.wanted === 'terminated') throw invalidKey();
    const caller: Caller = {
      accountId: pod.accountId,
      keyId: `pod:${podId}`,
      operator: false,
      fullAccess: false,
      podId,
      interface: request.interface,
      requestId: request.requestId,
    };
    onAuthenticated(caller);
    if (request.podId !== podId && request.podId !== ANY_POD)
      throw new BerthError('forbidden', POD_ACCESS_DENIED);
    return caller;
  }

  /** Writes the "last used" times to the store. Called periodically and at shutdown. */
  saveLastUsed(): Promise<void> {
    return this.#keys.saveLastUsed();
  }
}

function invalidKey(): BerthError {
  return new BerthError('unauthenticated', 'invalid API key');
}

/** Throws if the key's scopes do not allow this. */
export function checkScope(
  record: ApiKey,
  { scope, mode, endpointId }: Pick<AccessRequest, 'scope' | 'mode' | 'endpointId'>,
): void {
  if (!permits(scopeLevelOf(record, scope, endpointId), mode))
    throw new BerthError('forbidden', `access denied: this key may not ${mode} through this API`);
}

function callerOf(key: AuthenticatedKey, request: Pick<AccessRequest, 'interface' | 'requestId'>): Caller {
  const fullAccess = key.access === 'all';
  return {
    accountId: key.accountId,
    keyId: key.id,
    operator: fullAccess && key.accountId === ROOT_ACCOUNT_ID,
    fullAccess,
    expiresAt: key.expiresAt,
    ...(key.sessionId !== undefined && { sessionId: key.sessionId }),
    mayReadJobs: (endpointId) => permits(scopeLevelOf(key, 'serverless', endpointId), 'read'),
    interface: request.interface,
    requestId: request.requestId,
  };
}
