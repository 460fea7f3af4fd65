import { isDeepStrictEqual } from 'node:util';
import type { AccessLevel, ApiKey, Scopes } from '../../domain/records.ts';
import { wallNow } from '../../support/clock.ts';
import { BerthError, notFound, ruleError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { auditEntry, diffRecords } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import { FULL_SCOPES, createApiKey, READ_SCOPES } from './new-api-key.ts';
import { MAX_NAME_LENGTH } from '../../domain/limits.ts';

const RESOURCE = 'API key';

export interface NewApiKey {
  name: string;
  access: AccessLevel;
  /** For a restricted key. Default for each scope: none. */
  scopes?: Partial<Scopes>;
  endpoints?: string[] | null;
  expiresAt?: number | null;
}

export type ApiKeyUpdate = Partial<
  Pick<ApiKey, 'name' | 'enabled' | 'expiresAt' | 'access' | 'endpoints'>
> & {
  scopes?: Partial<Scopes>;
};

const NO_SCOPES: Scopes = { rest: 'none', graphql: 'none', serverless: 'none' };

export class ApiKeys {
  readonly #context: ResourceContext;

  constructor(context: ResourceContext) {
    this.#context = context;
  }

  /** The key itself is in this answer and in no other. */
  async create(
    caller: Caller,
    fields: NewApiKey,
    accountId = caller.accountId,
  ): Promise<{ record: ApiKey; key: string }> {
    this.#checkManager(caller, accountId);
    await this.#checkAccount(accountId);
    checkKeyName(fields.name);
    this.#checkExpiry(fields.expiresAt ?? null);
    checkRestrictions(fields.access, fields);
    const { record, key } = createApiKey(this.#context, {
      accountId,
      name: fields.name,
      access: fields.access,
      scopes: scopesOf(fields.access, fields.scopes),
      endpoints: fields.access === 'restricted' ? (fields.endpoints ?? null) : null,
      expiresAt: fields.expiresAt ?? null,
    });
    await this.#context.store.keys.insert(
      record,
      auditEntry(this.#context, caller, 'create', RESOURCE, record.id, [], accountId),
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

  async update(caller: Caller, id: string, { scopes, ...fields }: ApiKeyUpdate): Promise<ApiKey> {
    const { accountId } = await this.#managed(caller, id);
    const changed = await this.#context.store.keys.change(accountId, id, (current) => {
      const access = fields.access ?? current.access;
      // Scopes of another access level do not carry over: a key that becomes restricted has only the given
      // scopes.
      const before = current.access === 'restricted' ? current.scopes : NO_SCOPES;
      const endpoints =
        access === 'restricted'
          ? fields.endpoints === undefined
            ? current.endpoints
            : fields.endpoints
          : null;
      checkRestrictions(access, { scopes, endpoints: fields.endpoints });
      checkKeyName(fields.name ?? current.name);
      if (fields.expiresAt !== undefined) this.#checkExpiry(fields.expiresAt);
      const record = { ...current, ...fields, endpoints, scopes: scopesOf(access, { ...before, ...scopes }) };
      return {
        record,
        audit: auditEntry(
          this.#context,
          caller,
          'update',
          RESOURCE,
          id,
          diffRecords(current, record, ['hash']),
          accountId,
        ),
      };
    });
    if (changed === undefined) throw notFound(RESOURCE, id);
    this.#context.events.publish('keys.changed', { source: 'request' });
    return changed;
  }

  /** Takes effect with the next request. */
  async revoke(caller: Caller, id: string): Promise<void> {
    const { accountId } = await this.#managed(caller, id);
    const removed = await this.#context.store.keys.remove(
      accountId,
      id,
      auditEntry(this.#context, caller, 'revoke', RESOURCE, id, [], accountId),
    );
    if (!removed) throw notFound(RESOURCE, id);
    this.#context.events.publish('keys.changed', { source: 'request' });
  }

  /** A key that this caller may change: one of its account or, for the operator, of any account. */
  async #managed(caller: Caller, id: string): Promise<ApiKey> {
    const { keys } = this.#context.store;
    const key = caller.operator ? await keys.findInAnyAccount(id) : await keys.find(caller.accountId, id);
    if (key === undefined) throw notFound(RESOURCE, id);
    this.#checkManager(caller, key.accountId);
    if (key.root)
      throw ruleError(
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
    if (expiresAt !== null && expiresAt <= wallNow(this.#context.clock))
      throw ruleError('the expiry must be in the future');
  }
}

export function checkKeyName(name: string): void {
  if (name.trim() === '' || name.length > MAX_NAME_LENGTH)
    throw ruleError(`a key's name must have 1 to ${MAX_NAME_LENGTH} characters`);
}

/**
 * Only a restricted key has scopes and endpoints. For another key they are refused, unless they equal what
 * the key shows.
 */
function checkRestrictions(
  access: AccessLevel,
  {
    scopes = {},
    endpoints,
  }: { scopes?: Partial<Scopes> | undefined; endpoints?: string[] | null | undefined },
): void {
  if (access === 'restricted') return;
  const granted = scopesOf(access, undefined);
  if (Array.isArray(endpoints) || !isDeepStrictEqual({ ...granted, ...scopes }, granted))
    throw ruleError(
      'scopes and endpoints are for a restricted key; set its access to restricted, or leave them out',
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
