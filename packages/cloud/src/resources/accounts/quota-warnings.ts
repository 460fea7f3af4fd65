import type { CloudEventBus } from '../../domain/events.ts';
import { SPEND_WARNING_RATIO } from '../../domain/quotas.ts';
import type { AccountQuotas } from './account-quotas.ts';

/**
 * Announces each limit when 80 % of it are used, and when all of it is. What falls back may be announced
 * again.
 */
export class QuotaWarnings {
  readonly #quotas: Pick<AccountQuotas, 'ratios'>;
  readonly #events: CloudEventBus;
  /** The level that was last announced, by account and limit. */
  readonly #announced = new Map<string, number>();

  constructor(quotas: Pick<AccountQuotas, 'ratios'>, events: CloudEventBus) {
    this.#quotas = quotas;
    this.#events = events;
  }

  async check(): Promise<void> {
    for (const { account, limit, ratio } of await this.#quotas.ratios()) {
      const level = ratio >= 1 ? 2 : ratio >= SPEND_WARNING_RATIO ? 1 : 0;
      const key = `${account} ${limit}`;
      const before = this.#announced.get(key) ?? 0;
      this.#announced.set(key, level);
      if (level > before)
        this.#events.publish('quota.warning', { accountId: account, limit, ratio, source: 'reconciler' });
    }
  }
}
