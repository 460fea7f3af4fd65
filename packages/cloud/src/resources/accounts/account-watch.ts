import { SPEND_WARNING_RATIO } from '../../domain/quotas.ts';
import { isoTime } from '../../support/clock.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import type { Log } from '../../support/log.ts';
import { SYSTEM_CALLER } from '../../domain/caller.ts';
import type { Account } from '../../domain/records.ts';
import type { AccountDirectory } from './account-directory.ts';
import type { LogUsage } from './log-usage.ts';
import type { AccountQuotas } from './account-quotas.ts';

export interface SpendWarning {
  event: 'spend.warning' | 'spend.reached';
  accountId: string;
  accountName: string;
  /** US dollars. */
  spent: number;
  limit: number;
  month: string;
  at: string;
}

export interface AccountWatchDeps {
  directory: AccountDirectory;
  quotas: AccountQuotas;
  logUsage: LogUsage;
  /** Sends a warning; rejects if nobody took it. */
  send(warning: SpendWarning): Promise<void>;
  log: Log;
}

/** Looks at intervals after limits that are reached without a request: spending, logs and their age. */
export class AccountWatch {
  readonly #context: ResourceContext;
  readonly #deps: AccountWatchDeps;

  constructor(context: ResourceContext, deps: AccountWatchDeps) {
    this.#context = context;
    this.#deps = deps;
  }

  async check(): Promise<void> {
    const { directory, logUsage, log } = this.#deps;
    for (const account of directory.list()) {
      const { spendPerMonth, logBytes } = directory.limitsOf(account.id);
      const logRetention = directory.retentionMs(account.id, 'logHours');
      try {
        if (spendPerMonth !== undefined) await this.#checkSpending(account, spendPerMonth);
        if (logBytes !== undefined) await logUsage.trim(account.id, logBytes);
        if (logRetention !== undefined)
          await logUsage.expire(account.id, this.#context.clock.now() - logRetention);
      } catch (error) {
        log.warn({ err: error, accountId: account.id }, 'the limits of an account could not be checked');
      }
    }
  }

  /** Warns once a month at 80 % and once at the limit. */
  async #checkSpending(account: Account, limit: number): Promise<void> {
    const { quotas, send, log, directory } = this.#deps;
    const spent = await quotas.used('spendPerMonth', account.id);
    const level = spent >= limit ? 'reached' : spent >= SPEND_WARNING_RATIO * limit ? 'warning' : undefined;
    if (level === undefined) return;
    const now = this.#context.clock.now();
    const month = isoTime(now).slice(0, 7);
    const mark = `${month} ${level}`;
    if (account.spendWarned === mark || account.spendWarned === `${month} reached`) return;
    log.warn(
      { accountId: account.id, spent, limit },
      `an account has spent ${Math.round((100 * spent) / (limit || 1))} % of its limit for the month`,
    );
    await send({
      event: `spend.${level}`,
      accountId: account.id,
      accountName: account.name,
      spent,
      limit,
      month,
      at: isoTime(now),
    });
    const changed = await this.#context.store.accounts.change(account.id, (current) => ({
      record: { ...current, spendWarned: mark },
      audit: auditEntry(
        this.#context,
        SYSTEM_CALLER,
        'warn of spending',
        'account',
        account.id,
        [],
        account.id,
      ),
    }));
    if (changed !== undefined) directory.set(changed);
  }
}
