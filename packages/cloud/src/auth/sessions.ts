import { randomBytes } from 'node:crypto';
import type { Caller } from '../domain/caller.ts';
import type { ApiKey } from '../domain/records.ts';
import {
  isSessionActive,
  MAX_USER_AGENT_LENGTH,
  SESSION_LIFETIME_MS,
  SESSION_TOKEN_PREFIX,
} from '../domain/session.ts';
import type { Session } from '../domain/session.ts';
import { auditEntry } from '../resources/resource-context.ts';
import type { ResourceContext } from '../resources/resource-context.ts';
import { hashApiKey } from '../support/crypto.ts';
import { BerthError, notFound } from '../support/errors.ts';
import { SignInLinks } from './sign-in-links.ts';

const RESOURCE = 'session';
const TOKEN_BYTES = 32;
/** The resolution of "last used": a write for every request would be too expensive. */
const LAST_USED_RESOLUTION_MS = 60_000;

/** The record of a key, and the session through which it is used, if any. */
export type AuthenticatedKey = ApiKey & { sessionId?: string };

/** Logins to the console. The token of a session stands for the key that it was created with. */
export class Sessions {
  readonly links: SignInLinks;
  readonly #context: ResourceContext;
  readonly #lastUsed = new Map<string, number>();

  constructor(context: ResourceContext) {
    this.#context = context;
    this.links = new SignInLinks(context, newToken);
  }

  /** The token is in this answer and in no other. */
  async create(
    key: AuthenticatedKey,
    userAgent: string,
    requestId: string,
  ): Promise<{ session: Session; token: string }> {
    if (key.sessionId !== undefined) throw new BerthError('unauthenticated', 'sign in with an API key');
    const token = newToken();
    const now = this.#context.clock.now();
    const session: Session = {
      id: this.#context.ids.resource(),
      accountId: key.accountId,
      keyId: key.id,
      hash: hashApiKey(token),
      userAgent: userAgent.slice(0, MAX_USER_AGENT_LENGTH),
      createdAt: now,
      lastUsedAt: now,
      expiresAt: now + SESSION_LIFETIME_MS,
    };
    const caller = { accountId: key.accountId, keyId: key.id, interface: 'rest-v2', requestId } as const;
    await this.#context.store.sessions.insert(
      session,
      auditEntry(
        this.#context,
        { ...caller, operator: false, fullAccess: false },
        'create',
        RESOURCE,
        session.id,
      ),
    );
    return { session, token };
  }

  /** The key that a token stands for. It expires with the session, if that is earlier. */
  async findKey(token: string): Promise<AuthenticatedKey | undefined> {
    const found = await this.#context.store.sessions.findByHash(hashApiKey(token));
    const now = this.#context.clock.now();
    if (found === undefined) return undefined;
    const { session, key } = found;
    const lastUsedAt = this.#lastUsed.get(session.id) ?? session.lastUsedAt;
    if (!isSessionActive({ ...session, lastUsedAt }, now)) return undefined;
    if (now - lastUsedAt >= LAST_USED_RESOLUTION_MS) this.#lastUsed.set(session.id, now);
    return {
      ...key,
      expiresAt: Math.min(key.expiresAt ?? Number.POSITIVE_INFINITY, session.expiresAt),
      sessionId: session.id,
    };
  }

  list(caller: Caller): Promise<Session[]> {
    return this.#context.store.sessions.list(caller.accountId, this.#context.clock.now());
  }

  /** A key ends its own sessions; a key with full access every session of its account. */
  async revoke(caller: Caller, id: string): Promise<void> {
    const session = (await this.list(caller)).find((candidate) => candidate.id === id);
    if (session === undefined) throw notFound(RESOURCE, id);
    if (session.keyId !== caller.keyId && !caller.fullAccess)
      throw new BerthError('forbidden', 'access denied: this session belongs to another key');
    await this.#remove(caller, id);
  }

  /** Ends the session of a token; without one nothing happens. */
  async end(token: string, requestId: string): Promise<void> {
    const found = await this.#context.store.sessions.findByHash(hashApiKey(token));
    if (found === undefined) return;
    const { accountId, keyId, id } = found.session;
    const caller = { accountId, keyId, operator: false, fullAccess: false } as const;
    await this.#remove({ ...caller, interface: 'rest-v2', requestId }, id);
  }

  async #remove(caller: Caller, id: string): Promise<void> {
    const audit = auditEntry(this.#context, caller, 'revoke', RESOURCE, id);
    if (!(await this.#context.store.sessions.remove(caller.accountId, id, audit))) return;
    this.#lastUsed.delete(id);
    this.#context.events.publish('keys.changed', { source: 'request' });
  }

  /** Writes the "last used" times to the store. Called periodically and at shutdown. */
  async saveLastUsed(): Promise<void> {
    if (this.#lastUsed.size === 0) return;
    const times = new Map(this.#lastUsed);
    await this.#context.store.sessions.saveLastUsed(times);
    for (const [id, at] of times) if (this.#lastUsed.get(id) === at) this.#lastUsed.delete(id);
  }
}

function newToken(): string {
  return SESSION_TOKEN_PREFIX + randomBytes(TOKEN_BYTES).toString('base64url');
}
