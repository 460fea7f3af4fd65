import { UniqueViolation } from '../../store/database.ts';
import type { Account, AuditEntry } from '../../store/records.ts';
import { BerthError, notFound, rule } from '../../support/errors.ts';
import type { Caller } from '../caller.ts';
import { auditOf } from '../context.ts';
import type { Context } from '../context.ts';
import { FULL_SCOPES, newKey } from '../keys/new-key.ts';
import { checkSshKeys } from './ssh-keys.ts';

const KIND = 'account';
export const MAX_ACCOUNT_NAME_LENGTH = 191;

export class Accounts {
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  /** A new account with its first key, which is shown here and never again. */
  async create(caller: Caller, name: string): Promise<{ account: Account; key: string }> {
    if (!caller.operator)
      throw new BerthError(
        'forbidden',
        'only a key with full access of the root account may create accounts',
      );
    if (name.trim() === '' || name.length > MAX_ACCOUNT_NAME_LENGTH)
      throw rule(`an account's name must have 1 to ${MAX_ACCOUNT_NAME_LENGTH} characters`);
    const { store, clock, ids } = this.#context;
    const account: Account = { id: ids.resource(), name, sshKeys: [], createdAt: clock.now() };
    const { record, key } = newKey(this.#context, {
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
        auditOf(this.#context, caller, 'create', KIND, account.id),
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

  async own(caller: Caller): Promise<Account> {
    const found = await this.#context.store.accounts.find(caller.accountId);
    if (found === undefined) throw notFound(KIND, caller.accountId);
    return found;
  }

  /** Replaces all SSH keys. */
  async replaceSshKeys(caller: Caller, keys: string[]): Promise<Account> {
    checkSshKeys(keys);
    const changed = await this.#context.store.accounts.changeSshKeys(caller.accountId, (current) => ({
      keys,
      audit: auditOf(this.#context, caller, 'update', KIND, caller.accountId, [
        { field: 'sshKeys', from: current.length, to: keys.length },
      ]),
    }));
    if (changed === undefined) throw notFound(KIND, caller.accountId);
    return changed;
  }

  audit(caller: Caller, page: { limit: number; before?: number }): Promise<(AuditEntry & { id: number })[]> {
    return this.#context.store.audit.list(caller.accountId, page);
  }
}
