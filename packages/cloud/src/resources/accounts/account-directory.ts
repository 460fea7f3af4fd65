import { ROOT_ACCOUNT_ID } from '../../domain/caller.ts';
import type { CloudEventBus } from '../../domain/events.ts';
import type { QuotaLimits } from '../../domain/quotas.ts';
import type { Account } from '../../domain/records.ts';
import type { AccountStore } from '../../store/store.ts';
import type { Log } from '../../support/log.ts';

const MS_PER_HOUR = 3_600_000;

/** Limits that apply unless something else is said. */
export interface ConfiguredLimits {
  /** For each account that has no limit of its own; not for the root account. */
  account: QuotaLimits;
  /** For all accounts together. */
  installation: QuotaLimits;
}

export interface AccountDirectoryDeps {
  store: Pick<AccountStore, 'list'>;
  events: CloudEventBus;
  configured: ConfiguredLimits;
  log: Log;
}

/**
 * The limits and the status of every account, in memory: they are asked for with each job. Changes on this
 * server or another one reach it with the event that also reaches the key caches.
 */
export class AccountDirectory {
  readonly #deps: AccountDirectoryDeps;
  #accounts = new Map<string, Account>();
  /** The limits in effect: asked for with each job, so they are not put together each time. */
  #limits = new Map<string, QuotaLimits>();

  constructor(deps: AccountDirectoryDeps) {
    this.#deps = deps;
    deps.events.subscribe('keys.changed', () => {
      this.load().catch((error: unknown) =>
        deps.log.warn({ err: error }, 'the limits of accounts could not be read'),
      );
    });
  }

  async load(): Promise<void> {
    const accounts = await this.#deps.store.list();
    this.#accounts = new Map(accounts.map((account) => [account.id, account]));
    this.#limits = new Map(accounts.map((account) => [account.id, this.#limitsInEffect(account)]));
  }

  /** An account that was changed just now, on this server. */
  set(account: Account): void {
    this.#accounts.set(account.id, account);
    this.#limits.set(account.id, this.#limitsInEffect(account));
  }

  list(): Account[] {
    return [...this.#accounts.values()];
  }

  isActive(accountId: string): boolean {
    return (this.#accounts.get(accountId)?.status ?? 'active') === 'active';
  }

  /** The account's own limits, and for the others those of the configuration. */
  limitsOf(accountId: string): QuotaLimits {
    return this.#limits.get(accountId) ?? this.#deps.configured.account;
  }

  /** For how long something of an account is kept; undefined if nothing limits that. */
  retentionMs(accountId: string, name: 'jobHours' | 'logHours'): number | undefined {
    const hours = Math.min(
      this.limitsOf(accountId)[name] ?? Infinity,
      this.installationLimits[name] ?? Infinity,
    );
    return hours === Infinity ? undefined : hours * MS_PER_HOUR;
  }

  #limitsInEffect({ id, limits }: Account): QuotaLimits {
    return id === ROOT_ACCOUNT_ID ? limits : { ...this.#deps.configured.account, ...limits };
  }

  get installationLimits(): QuotaLimits {
    return this.#deps.configured.installation;
  }
}
