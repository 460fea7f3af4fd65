import { ROOT_ACCOUNT_ID } from '../../domain/caller.ts';
import { quotaError } from '../../domain/quotas.ts';
import type { QuotaOwner } from '../../domain/quotas.ts';
import type { Clock } from '../../support/clock.ts';
import { RateLimiter } from '../../support/rate-limiter.ts';
import type { RateShare } from '../../support/rate-limiter.ts';
import type { AccountDirectory } from './account-directory.ts';

const WINDOW_SECONDS = 60;
const INSTALLATION = '';

export interface AccountRequestsDeps {
  directory: Pick<AccountDirectory, 'limitsOf' | 'installationLimits'>;
  clock: Clock;
  /** With the other servers on the database. */
  share: RateShare;
}

/**
 * Counts the requests of accounts against the limit `requests`. Nothing is counted where it is not set. The
 * limit of the installation does not hold for the root account: an operator can always raise it.
 */
export class AccountRequests {
  readonly #directory: AccountRequestsDeps['directory'];
  readonly #limiter: RateLimiter;

  constructor({ directory, clock, share }: AccountRequestsDeps) {
    this.#directory = directory;
    this.#limiter = new RateLimiter(clock, [WINDOW_SECONDS], share);
  }

  /** Throws if the account, or all of them together, have sent as many in this minute as they may. */
  count(accountId: string): void {
    const own = this.#directory.limitsOf(accountId).requests;
    if (own !== undefined) this.#acquire(accountId, 'account', own);
    const all = this.#directory.installationLimits.requests;
    if (all !== undefined && accountId !== ROOT_ACCOUNT_ID) this.#acquire(INSTALLATION, 'installation', all);
  }

  /** In this minute. */
  used(accountId: string | undefined): number {
    return this.#limiter.used(accountId ?? INSTALLATION)[0] ?? 0;
  }

  #acquire(key: string, owner: QuotaOwner, limit: number): void {
    const { exceeded } = this.#limiter.acquire(key, { quotas: [() => limit] });
    if (exceeded === undefined || exceeded === 'open') return;
    throw quotaError('requests', owner, {
      used: exceeded.used,
      added: 1,
      limit,
      secondsLeft: exceeded.secondsLeft,
    });
  }
}
