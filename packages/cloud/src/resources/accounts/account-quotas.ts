import {
  isRetention,
  MAX_COUNTED_JOBS,
  quotaError,
  QUOTA_NAMES,
  VOLUME_BYTES_PER_GB,
} from '../../domain/quotas.ts';
import type { QuotaLimits, QuotaName, QuotaOwner, RefusingQuotaName } from '../../domain/quotas.ts';
import type { ReservedResources } from '../../store/overview-store.ts';
import type { Store } from '../../store/store.ts';
import { KeyedMutex } from '../../support/keyed-mutex.ts';
import type { AccountDirectory } from './account-directory.ts';

export interface QuotasDeps {
  directory: AccountDirectory;
  store: Pick<Store, 'overview' | 'workers' | 'jobs' | 'exclusively'>;
  /** What no table holds. */
  imageBytes(accountId: string): Promise<number>;
  logBytes(accountId: string): Promise<number>;
  /** In this minute; undefined for all accounts together. */
  requests(accountId: string | undefined): number;
  /** US dollars since the start of the calendar month. */
  spentThisMonth(accountId: string): Promise<number>;
}

/** What a request is about to use. */
export type QuotaNeeds = { readonly [Name in RefusingQuotaName]?: number };

/** One limit as the API shows it. */
export interface QuotaUsage {
  name: QuotaName;
  used: number;
  /** Null where there is none. */
  limit: number | null;
  /** Where `used` is an estimate: to count it would take too long. */
  estimated?: true;
}

/** How much of a limit that is set is used. The account is empty for a limit of the installation. */
export interface LimitRatio {
  account: string;
  limit: QuotaName;
  used: number;
  maximum: number;
  ratio: number;
}

/** What one read of the store says of all of them. */
const RESERVED = {
  pods: ({ pods }: ReservedResources) => pods,
  workers: ({ workersMax }: ReservedResources) => workersMax,
  gpus: ({ gpus }: ReservedResources) => gpus,
  volumeBytes: ({ volumeGb }: ReservedResources) => volumeGb * VOLUME_BYTES_PER_GB,
};

const isReserved = (name: QuotaName): name is keyof typeof RESERVED => Object.hasOwn(RESERVED, name);

const INSTALLATION = '';

function limitsWorkers(limits: QuotaLimits): boolean {
  return (['workers', 'gpus', 'spendPerMonth'] as const).some((name) => limits[name] !== undefined);
}

/** Checks what accounts use against their limits, before something is created or started. */
export class AccountQuotas {
  readonly #deps: QuotasDeps;
  readonly #mutex = new KeyedMutex();

  constructor(deps: QuotasDeps) {
    this.#deps = deps;
  }

  /**
   * Runs the work if the account and the installation have room for it. Requests of one account come one
   * after the other, on all servers together, so two of them cannot share the last place.
   */
  async within<T>(accountId: string, needs: QuotaNeeds, work: () => Promise<T>): Promise<T> {
    const { directory } = this.#deps;
    const names = Object.keys(needs) as RefusingQuotaName[];
    const limited = (limits: QuotaLimits): boolean => names.some((name) => limits[name] !== undefined);
    const byInstallation = limited(directory.installationLimits);
    if (!byInstallation && !limited(directory.limitsOf(accountId))) return work();
    const owner = byInstallation ? INSTALLATION : accountId;
    return this.#mutex.runExclusive(owner, () =>
      this.#deps.store.exclusively(`limits of ${owner}`, async () => {
        for (const name of names) await this.#check(accountId, name, needs[name] ?? 0);
        return work();
      }),
    );
  }

  /** Throws if spending or something else keeps new instances of this account from starting. */
  check(accountId: string, needs: QuotaNeeds): Promise<void> {
    return this.within(accountId, needs, async () => undefined);
  }

  /**
   * Runs what counts workers and starts some. Where a limit concerns them, such work of one account comes one after
   * the other, on all servers together.
   */
  async startingWorkers(accountId: string, work: () => Promise<void>): Promise<void> {
    const { directory, store } = this.#deps;
    const owner = [INSTALLATION, accountId].find((one) =>
      limitsWorkers(one === INSTALLATION ? directory.installationLimits : directory.limitsOf(one)),
    );
    if (owner === undefined) return work();
    const name = `workers of ${owner}`;
    return this.#mutex.runExclusive(name, () => store.exclusively(name, work));
  }

  /** How many of the wanted workers may start now; with the refusal of the others. */
  async allowedWorkers(
    accountId: string,
    wanted: number,
    gpusEach: number,
  ): Promise<{ allowed: number; refusal?: Error }> {
    const { directory } = this.#deps;
    const limits = directory.limitsOf(accountId);
    if (!limitsWorkers(limits) && !limitsWorkers(directory.installationLimits)) return { allowed: wanted };
    const live = (await this.#deps.store.workers.listLiveWorkers()).filter(
      (worker) => worker.accountId === accountId,
    ).length;
    for (let allowed = 0; allowed < wanted; allowed += 1) {
      try {
        if (limits.workers !== undefined && live + allowed >= limits.workers)
          throw quotaError('workers', 'account', { used: live + allowed, added: 1, limit: limits.workers });
        await this.#check(accountId, 'gpus', gpusEach * (allowed + 1));
        await this.#check(accountId, 'spendPerMonth', 0);
      } catch (error) {
        return { allowed, refusal: error as Error };
      }
    }
    return { allowed: wanted };
  }

  /** Every limit of an account with what is used of it. */
  async usage(accountId: string): Promise<QuotaUsage[]> {
    const { directory, store } = this.#deps;
    const limits = directory.limitsOf(accountId);
    const queuedJobs = await this.used('queuedJobs', accountId);
    const estimated = queuedJobs > MAX_COUNTED_JOBS;
    const reserved = await store.overview.reserved(accountId);
    const usedOf = (name: QuotaName): number | Promise<number> => {
      if (name === 'queuedJobs') return queuedJobs;
      if (name === 'queuedBytes' && estimated) return store.jobs.estimateQueuedBytes(accountId);
      return isReserved(name) ? RESERVED[name](reserved) : this.used(name, accountId);
    };
    return Promise.all(
      QUOTA_NAMES.map(async (name) => ({
        name,
        used: await usedOf(name),
        limit: limits[name] ?? null,
        ...(estimated && name === 'queuedBytes' && { estimated }),
      })),
    );
  }

  /** How much of each limit that is set is used. The account is empty for those of the installation. */
  async ratios(): Promise<LimitRatio[]> {
    const { directory } = this.#deps;
    const owners = [
      { account: INSTALLATION, limits: directory.installationLimits },
      ...directory.list().map(({ id }) => ({ account: id, limits: directory.limitsOf(id) })),
    ];
    const ratios: LimitRatio[] = [];
    for (const { account, limits } of owners)
      for (const [limit, maximum] of Object.entries(limits) as [QuotaName, number][]) {
        if (isRetention(limit)) continue;
        const owner = account === INSTALLATION ? undefined : account;
        if (limit === 'queuedBytes' && (await this.used('queuedJobs', owner)) > MAX_COUNTED_JOBS) continue;
        const used = await this.used(limit, owner);
        ratios.push({ account, limit, used, maximum, ratio: maximum === 0 ? 1 : used / maximum });
      }
    return ratios;
  }

  async #check(accountId: string, name: RefusingQuotaName, added: number): Promise<void> {
    const { directory } = this.#deps;
    await this.#checkOne(name, added, 'account', directory.limitsOf(accountId), accountId);
    await this.#checkOne(name, added, 'installation', directory.installationLimits, undefined);
  }

  async #checkOne(
    name: RefusingQuotaName,
    added: number,
    owner: QuotaOwner,
    limits: QuotaLimits,
    accountId: string | undefined,
  ): Promise<void> {
    const limit = limits[name];
    if (limit === undefined || (added === 0 && name !== 'spendPerMonth')) return;
    const used = await this.used(name, accountId);
    const isReached = name === 'spendPerMonth' ? used >= limit : used + added > limit;
    if (isReached) throw quotaError(name, owner, { used, added, limit });
  }

  /** What an account uses, or all of them. Of a time to keep something, nothing is used. */
  async used(name: QuotaName, accountId: string | undefined): Promise<number> {
    const { store, imageBytes, logBytes, spentThisMonth } = this.#deps;
    switch (name) {
      case 'jobHours':
      case 'logHours':
        return 0;
      case 'queuedJobs':
        return store.jobs.queuedJobs(accountId);
      case 'queuedBytes':
        return store.jobs.queuedBytes(accountId);
      case 'pods':
      case 'workers':
      case 'gpus':
      case 'volumeBytes':
        return RESERVED[name](await store.overview.reserved(accountId));
      case 'requests':
        return this.#deps.requests(accountId);
      case 'imageBytes':
        return this.#sum(accountId, imageBytes);
      case 'logBytes':
        return this.#sum(accountId, logBytes);
      case 'spendPerMonth':
        return this.#sum(accountId, spentThisMonth);
    }
  }

  async #sum(accountId: string | undefined, usedBy: (accountId: string) => Promise<number>): Promise<number> {
    if (accountId !== undefined) return usedBy(accountId);
    let sum = 0;
    for (const { id } of this.#deps.directory.list()) sum += await usedBy(id);
    return sum;
  }
}
