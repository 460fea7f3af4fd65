import { UniqueViolation } from '../../store/database.ts';
import type { Account, AuditEntry } from '../../domain/records.ts';
import { BerthError, notFound, ruleError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import { FULL_SCOPES, createApiKey } from '../keys/new-api-key.ts';
import { checkSshKeys } from '../../domain/ssh-keys.ts';
import { MAX_NAME_LENGTH } from '../../domain/limits.ts';

const RESOURCE = 'account';

export class Accounts {
  readonly #context: ResourceContext;

  constructor(context: ResourceContext) {
    this.#context = context;
  }

  /** Creates an account and its first key. The key is returned only here. */
  async create(caller: Caller, name: string): Promise<{ account: Account; key: string }> {
    if (!caller.operator)
      throw new BerthError(
        'forbidden',
        'only a key with full access of the root account may create accounts',
      );
    if (name.trim() === '' || name.length > MAX_NAME_LENGTH)
      throw ruleError(`an account's name must have 1 to ${MAX_NAME_LENGTH} characters`);
    const { store, clock, ids } = this.#context;
    const account: Account = { id: ids.resource(), name, sshKeys: [], createdAt: clock.now() };
    const { record, key } = createApiKey(this.#context, {
      accountId: account.id,
      name: 'first key',
      access: 'all',
      scopes: FULL_SCOPES,
      endpoints: null,
      expiresAt: null,
    });
    try {
      await store.accounts.insert(
        account,
        record,
        auditEntry(this.#context, caller, 'create', RESOURCE, account.id),
      );
    } catch (error) {
      if (error instanceof UniqueViolation)
        throw new BerthError(
          'conflict',
          `an account named ${JSON.stringify(name)} exists already; choose another name`,
        );
      throw error;
    }
    return { account, key };
  }

  list(caller: Caller): Promise<Account[]> {
    if (!caller.operator)
      throw new BerthError('forbidden', 'only a key with full access of the root account may list accounts');
    return this.#context.store.accounts.list();
  }

  async getOwn(caller: Caller): Promise<Account> {
    const found = await this.#context.store.accounts.find(caller.accountId);
    if (found === undefined) throw notFound(RESOURCE, caller.accountId);
    return found;
  }

  /** Replaces all SSH keys. */
  async replaceSshKeys(caller: Caller, keys: string[]): Promise<Account> {
    checkSshKeys(keys);
    const changed = await this.#context.store.accounts.changeSshKeys(caller.accountId, (current) => ({
      keys,
      audit: auditEntry(this.#context, caller, 'update', RESOURCE, caller.accountId, [
        { field: 'sshKeys', from: current.length, to: keys.length },
      ]),
    }));
    if (changed === undefined) throw notFound(RESOURCE, caller.accountId);
    return changed;
  }

  audit(caller: Caller, page: { limit: number; before?: number }): Promise<(AuditEntry & { id: number })[]> {
    return this.#context.store.audit.list(caller.accountId, page);
  }
}
