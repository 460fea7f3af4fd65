import { UniqueViolation } from '../../store/database.ts';
import { ACCOUNT_DEFAULTS, type Account, type AuditEntry } from '../../domain/records.ts';
import { BerthError, notFound, ruleError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { ROOT_ACCOUNT_ID } from '../../domain/caller.ts';
import { applyQuotaChange } from '../../domain/quotas.ts';
import type { AccountDirectory } from './account-directory.ts';
import type { AccountRemoval } from './account-removal.ts';
import type { AccountQuotas, QuotaUsage } from './account-quotas.ts';
import type { AuditFilter, AuditStore } from '../../store/store.ts';
import { auditEntry, diffRecords } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import { FULL_SCOPES, createApiKey } from '../keys/new-api-key.ts';
import { checkSshKeys } from '../../domain/ssh-keys.ts';
import { MAX_NAME_LENGTH } from '../../domain/limits.ts';

const RESOURCE = 'account';
/** In place of the id of an account: no account has it, since ids are longer. */
const ALL_ACCOUNTS = 'all';
/** How long a deletion is waited for. Clients time out after ten seconds. */
const REMOVAL_TIMEOUT_MS = 8_000;

export interface AccountsDeps {
  directory: AccountDirectory;
  quotas: AccountQuotas;
  removal: AccountRemoval;
  /** Stops the pods of an account, and lets its workers go. */
  stopAll(accountId: string): Promise<void>;
}

/** What an operator sees and sets of an account's limits. */
export interface AccountLimits {
  account: Account;
  usage: QuotaUsage[];
}

export class Accounts {
  readonly #context: ResourceContext;
  readonly #deps: AccountsDeps | undefined;

  /** Without `deps`, accounts have no limits and cannot be disabled or deleted. */
  constructor(context: ResourceContext, deps?: AccountsDeps) {
    this.#context = context;
    this.#deps = deps;
  }

  /** Creates an account and its first key. The key is returned only here. */
  async create(caller: Caller, name: string): Promise<{ account: Account; key: string }> {
    checkOperator(caller, 'create accounts');
    if (name.trim() === '' || name.length > MAX_NAME_LENGTH)
      throw ruleError(`an account's name must have 1 to ${MAX_NAME_LENGTH} characters`);
    const { store, clock, ids } = this.#context;
    const account: Account = { ...ACCOUNT_DEFAULTS, id: ids.resource(), name, createdAt: clock.now() };
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
    this.#deps?.directory.set(account);
    // Other servers learn of it.
    this.#context.events.publish('keys.changed', { source: 'request' });
    return { account, key };
  }

  list(caller: Caller): Promise<Account[]> {
    checkOperator(caller, 'list accounts');
    return this.#context.store.accounts.list();
  }

  /** Every limit of an account, and what is used of it. Operators see those of every account. */
  async limits(caller: Caller, accountId = caller.accountId): Promise<AccountLimits> {
    if (accountId !== caller.accountId) checkOperator(caller, 'see the limits of other accounts');
    const account = await this.#find(accountId);
    return { account, usage: await this.#services.quotas.usage(accountId) };
  }

  /** A number sets a limit, null removes it; the others stay. */
  async changeLimits(
    caller: Caller,
    accountId: string,
    change: Readonly<Record<string, number | null | undefined>>,
  ): Promise<AccountLimits> {
    checkOperator(caller, 'change limits');
    if (accountId === ROOT_ACCOUNT_ID && change['requests'] === 0)
      throw ruleError(
        'requests of the root account must be at least 1: without any, nobody could raise it again',
      );
    await this.#change(caller, accountId, (current) => ({
      ...current,
      limits: applyQuotaChange(current.limits, change),
    }));
    for (const [limit, maximum] of Object.entries(change))
      if (maximum !== undefined)
        this.#context.events.publish('quota.changed', { accountId, limit, maximum, source: 'request' });
    return this.limits(caller, accountId);
  }

  /** Keys stop working at once, pods are stopped, and endpoints have no workers until it is enabled again. */
  async disable(caller: Caller, accountId: string): Promise<Account> {
    checkOperator(caller, 'disable accounts');
    if (accountId === ROOT_ACCOUNT_ID) throw ruleError('the root account cannot be disabled');
    const account = await this.#change(caller, accountId, (current) => ({
      ...checkNotDeleting(current),
      status: 'disabled',
    }));
    await this.#services.stopAll(accountId);
    return account;
  }

  async enable(caller: Caller, accountId: string): Promise<Account> {
    checkOperator(caller, 'enable accounts');
    const account = await this.#change(caller, accountId, (current) => ({
      ...checkNotDeleting(current),
      status: 'active',
    }));
    for (const { id } of await this.#context.store.endpoints.list(accountId))
      this.#context.events.publish('endpoint.changed', { endpointId: id, source: 'request' });
    return account;
  }

  /** Deletes an account with all that it owns. Resolves when that is done, or continues in the background. */
  async remove(caller: Caller, accountId: string): Promise<void> {
    checkOperator(caller, 'delete accounts');
    if (accountId === ROOT_ACCOUNT_ID) throw ruleError('the root account cannot be deleted');
    await this.#change(caller, accountId, (current) => ({ ...current, status: 'deleting' }));
    const { removal } = this.#services;
    const timeout = new Promise<void>((resolve) => setTimeout(resolve, REMOVAL_TIMEOUT_MS).unref());
    // What fails now is tried again, and reported, at intervals.
    await Promise.race([removal.remove(accountId).catch(() => undefined), timeout]);
    this.#context.events.publish('keys.changed', { source: 'request' });
  }

  async #change(caller: Caller, accountId: string, next: (current: Account) => Account): Promise<Account> {
    const changed = await this.#context.store.accounts.change(accountId, (current) => {
      const record = next(current);
      return {
        record,
        audit: auditEntry(
          this.#context,
          caller,
          'update',
          RESOURCE,
          accountId,
          diffRecords(current, record),
          accountId,
        ),
      };
    });
    if (changed === undefined) throw notFound(RESOURCE, accountId);
    this.#services.directory.set(changed);
    // The caches of keys, here and on other servers, and with them everything that a key keeps open.
    this.#context.events.publish('keys.changed', { source: 'request' });
    return changed;
  }

  async #find(accountId: string): Promise<Account> {
    const found = await this.#context.store.accounts.find(accountId);
    if (found === undefined) throw notFound(RESOURCE, accountId);
    return found;
  }

  get #services(): AccountsDeps {
    if (this.#deps === undefined) throw new Error('accounts were created without limits');
    return this.#deps;
  }

  async getOwn(caller: Caller): Promise<Account> {
    const found = await this.#context.store.accounts.find(caller.accountId);
    if (found === undefined) throw notFound(RESOURCE, caller.accountId);
    return found;
  }

  /** Replaces all SSH keys. */
  async replaceSshKeys(caller: Caller, keys: string[]): Promise<Account> {
    checkSshKeys(keys);
    const changed = await this.#context.store.accounts.change(caller.accountId, (current) => ({
      record: { ...current, sshKeys: keys },
      audit: auditEntry(this.#context, caller, 'update', RESOURCE, caller.accountId, [
        { field: 'sshKeys', from: current.sshKeys.length, to: keys.length },
      ]),
    }));
    if (changed === undefined) throw notFound(RESOURCE, caller.accountId);
    return changed;
  }

  audit(caller: Caller, page: { limit: number; before?: number }): Promise<(AuditEntry & { id: number })[]> {
    return this.#context.store.audit.list(caller.accountId, page);
  }

  /** `accountId` is an account, or `all`; default: the caller's own. */
  searchAudit(
    caller: Caller,
    { accountId, ...filter }: AuditFilter,
    page: { limit: number; before?: number },
  ): ReturnType<AuditStore['search']> {
    const audited = auditedAccount(caller, accountId);
    return this.#context.store.audit.search(
      { ...filter, ...(audited !== undefined && { accountId: audited }) },
      page,
    );
  }
}

/** Operators may search the log of every account, or of all of them at once. */
function auditedAccount(caller: Caller, wanted: string | undefined): string | undefined {
  if (wanted === undefined || wanted === caller.accountId) return caller.accountId;
  checkOperator(caller, 'see the audit log of other accounts');
  return wanted === ALL_ACCOUNTS ? undefined : wanted;
}

function checkOperator({ operator }: Caller, what: string): void {
  if (!operator)
    throw new BerthError('forbidden', `only a key with full access of the root account may ${what}`);
}

function checkNotDeleting(account: Account): Account {
  if (account.status === 'deleting')
    throw new BerthError('state', `account ${account.id} is being deleted, and that cannot be undone`);
  return account;
}
