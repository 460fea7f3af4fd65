import { isDeepStrictEqual } from 'node:util';
import type { AccessLevel, ApiKey, Scopes } from '../../store/records.ts';
import { BerthError, notFound, rule } from '../../support/errors.ts';
import type { Caller } from '../caller.ts';
import { auditOf, changesBetween } from '../context.ts';
import type { Context } from '../context.ts';
import { FULL_SCOPES, newKey, READ_SCOPES } from './new-key.ts';

const KIND = 'API key';
export const MAX_KEY_NAME_LENGTH = 191;

export interface NewKey {
  name: string;
  access: AccessLevel;
  /** Of a restricted key; what is not said is none. */
  scopes?: Partial<Scopes>;
  endpoints?: string[] | null;
  expiresAt?: number | null;
}

export type KeyChange = Partial<Pick<ApiKey, 'name' | 'enabled' | 'expiresAt' | 'access' | 'endpoints'>> & {
  scopes?: Partial<Scopes>;
};

const NO_SCOPES: Scopes = { rest: 'none', graphql: 'none', serverless: 'none' };

export class Keys {
  readonly #context: Context;
  readonly #changed: () => void;

  /** `changed` is told when a key has become another or is gone. */
  constructor(context: Context, changed: () => void = () => undefined) {
    this.#context = context;
    this.#changed = changed;
  }

  /** The key itself is in this answer and in no other. */
  async create(
    caller: Caller,
    fields: NewKey,
    accountId = caller.accountId,
  ): Promise<{ record: ApiKey; key: string }> {
    this.#checkManager(caller, accountId);
    await this.#checkAccount(accountId);
    checkKeyName(fields.name);
    this.#checkExpiry(fields.expiresAt ?? null);
    checkLimits(fields.access, fields);
    const { record, key } = newKey(this.#context, {
      accountId,
      name: fields.name,
      access: fields.access,
      scopes: scopesOf(fields.access, fields.scopes),
      endpoints: fields.access === 'restricted' ? (fields.endpoints ?? null) : null,
      expiresAt: fields.expiresAt ?? null,
    });
    await this.#context.store.keys.insert(
      record,
      auditOf(this.#context, caller, 'create', KIND, record.id, [], accountId),
    );
    return { record, key };
  }

  async list(caller: Caller, accountId = caller.accountId): Promise<ApiKey[]> {
    if (accountId !== caller.accountId) {
      this.#checkManager(caller, accountId);
      await this.#checkAccount(accountId);
    }
    return this.#context.store.keys.list(accountId);
  }

  async update(caller: Caller, id: string, { scopes, ...fields }: KeyChange): Promise<ApiKey> {
    const { accountId } = await this.#managed(caller, id);
    const changed = await this.#context.store.keys.change(accountId, id, (current) => {
      const access = fields.access ?? current.access;
      // What another level granted does not carry over: a key that becomes restricted has only what is said.
      const before = current.access === 'restricted' ? current.scopes : NO_SCOPES;
      const endpoints =
        access === 'restricted'
          ? fields.endpoints === undefined
            ? current.endpoints
            : fields.endpoints
          : null;
      checkLimits(access, { scopes, endpoints: fields.endpoints });
      checkKeyName(fields.name ?? current.name);
      if (fields.expiresAt !== undefined) this.#checkExpiry(fields.expiresAt);
      const record = { ...current, ...fields, endpoints, scopes: scopesOf(access, { ...before, ...scopes }) };
      return {
        record,
        audit: auditOf(
          this.#context,
          caller,
          'update',
          KIND,
          id,
          changesBetween(current, record, ['hash']),
          accountId,
        ),
      };
    });
    if (changed === undefined) throw notFound(KIND, id);
    this.#changed();
    return changed;
  }

  /** Holds from the next request on. */
  async revoke(caller: Caller, id: string): Promise<void> {
    const { accountId } = await this.#managed(caller, id);
    const removed = await this.#context.store.keys.remove(
      accountId,
      id,
      auditOf(this.#context, caller, 'revoke', KIND, id, [], accountId),
    );
    if (!removed) throw notFound(KIND, id);
    this.#changed();
  }

  /** The key that this caller may change: of the own account, or, for the operator, of any. */
  async #managed(caller: Caller, id: string): Promise<ApiKey> {
    const { keys } = this.#context.store;
    const key = caller.operator ? await keys.findAnywhere(id) : await keys.find(caller.accountId, id);
    if (key === undefined) throw notFound(KIND, id);
    this.#checkManager(caller, key.accountId);
    if (key.root)
      throw rule(
        'the root key cannot be changed or revoked here; start Berth with another BERTH_ROOT_KEY to replace it',
      );
    return key;
  }

  #checkManager(caller: Caller, accountId: string): void {
    if (!caller.fullAccess) throw new BerthError('forbidden', 'only a key with full access may manage keys');
    if (accountId !== caller.accountId && !caller.operator) throw notFound('account', accountId);
  }

  async #checkAccount(accountId: string): Promise<void> {
    if ((await this.#context.store.accounts.find(accountId)) === undefined)
      throw notFound('account', accountId);
  }

  #checkExpiry(expiresAt: number | null): void {
    if (expiresAt !== null && expiresAt <= this.#context.clock.now())
      throw rule('the expiry must be in the future');
  }
}

export function checkKeyName(name: string): void {
  if (name.trim() === '' || name.length > MAX_KEY_NAME_LENGTH)
    throw rule(`a key's name must have 1 to ${MAX_KEY_NAME_LENGTH} characters`);
}

/** Scopes and endpoints limit a restricted key alone. Another one is not made without limits that were asked for; what it is shown with may be said again. */
function checkLimits(
  access: AccessLevel,
  {
    scopes = {},
    endpoints,
  }: { scopes?: Partial<Scopes> | undefined; endpoints?: string[] | null | undefined },
): void {
  if (access === 'restricted') return;
  const granted = scopesOf(access, undefined);
  if (Array.isArray(endpoints) || !isDeepStrictEqual({ ...granted, ...scopes }, granted))
    throw rule(
      'scopes and endpoints are for a restricted key; make its access restricted, or leave them out',
    );
}

function scopesOf(access: AccessLevel, scopes: Partial<Scopes> | undefined): Scopes {
  switch (access) {
    case 'all':
      return FULL_SCOPES;
    case 'read-only':
      return READ_SCOPES;
    case 'restricted':
      return { ...NO_SCOPES, ...scopes };
  }
}
