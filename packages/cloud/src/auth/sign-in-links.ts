import type { Caller } from '../domain/caller.ts';
import type { ApiKey } from '../domain/records.ts';
import { SIGN_IN_LINK_LIFETIME_MS } from '../domain/session.ts';
import type { ResourceContext } from '../resources/resource-context.ts';
import { wallNow } from '../support/clock.ts';
import { hashApiKey } from '../support/crypto.ts';
import { BerthError } from '../support/errors.ts';
import { isKeyActive } from './scopes.ts';

/** Tokens that sign in to the console once, as `npm start` and `berth console` print them. */
export class SignInLinks {
  readonly #context: ResourceContext;
  readonly #newToken: () => string;

  constructor(context: ResourceContext, newToken: () => string) {
    this.#context = context;
    this.#newToken = newToken;
  }

  /** A token that signs in once, with this key. */
  async create({ accountId, keyId }: Pick<Caller, 'accountId' | 'keyId'>): Promise<{
    token: string;
    expiresAt: number;
  }> {
    if (keyId === null || keyId.startsWith('pod:'))
      throw new BerthError('forbidden', 'access denied: a sign-in link needs an API key');
    const token = this.#newToken();
    const expiresAt = this.#context.clock.now() + SIGN_IN_LINK_LIFETIME_MS;
    await this.#context.store.sessions.insertLink({ hash: hashApiKey(token), accountId, keyId, expiresAt });
    return { token, expiresAt };
  }

  /** The key of a link, which cannot be used again. */
  async redeem(token: string): Promise<ApiKey> {
    const { store, clock } = this.#context;
    const key = await store.sessions.takeLink(hashApiKey(token), clock.now());
    if (key === undefined || !isKeyActive(key, wallNow(clock)))
      throw new BerthError(
        'unauthenticated',
        'this link was used already, or has expired; `berth console` prints a new one',
      );
    return key;
  }
}
