import { ROOT_ACCOUNT_ID } from '../../../domain/caller.ts';
import type { AccountIsolation } from '../../../domain/placement/engine-capacity.ts';
import { ruleError } from '../../../support/errors.ts';
import type { FileOwner } from '../../../support/file-owner.ts';
import type { Log } from '../../../support/log.ts';
import type { UserRange } from '../../../support/user-range.ts';
import { AccountFirewall } from './account-firewall.ts';
import { AccountUsers } from './account-users.ts';
import { type Isolation, type IsolationSetting, isolationWithoutProbe, probeIsolation } from './isolation.ts';

/** The user that runs an account's instances, and how far they are kept apart. */
export interface Tenant {
  user: FileOwner;
  /** Whether instances have namespaces of their own; otherwise only their user keeps them apart. */
  namespaces: boolean;
}

export interface TenantsOptions {
  setting: IsolationSetting;
  range: UserRange;
  /** Holds the file of each user id. */
  usersFolder: string;
  /** Berth's data folder. */
  data: string;
  /** Ports of Berth itself, which accounts reach. */
  ownPorts?: readonly number[] | undefined;
  onProbed(mode: AccountIsolation): void;
  log?: Log | undefined;
}

/** Decides under which user the instances of an account run. */
export class Tenants {
  readonly #options: TenantsOptions;
  readonly #users: AccountUsers;
  readonly #firewall: AccountFirewall;
  #isolation: Isolation | undefined;
  #probing: Promise<Isolation> | undefined;

  constructor(options: TenantsOptions) {
    this.#options = options;
    this.#users = new AccountUsers(options.usersFolder, options.range);
    this.#firewall = new AccountFirewall(options);
    this.#isolation = isolationWithoutProbe(options.setting);
  }

  /** Undefined until the probe has ended. */
  get mode(): AccountIsolation | undefined {
    return this.#isolation?.mode;
  }

  /** Tries what the machine can do, once. */
  async isolation(): Promise<Isolation> {
    const { setting, range, data, onProbed } = this.#options;
    this.#probing ??= probeIsolation(setting, range, data).then((found) => {
      onProbed(found.mode);
      return found;
    });
    return (this.#isolation = await this.#probing);
  }

  /** Resolves when no probe runs. Rules of the machine's firewall stay while something of an account runs. */
  async close(isEmpty: () => boolean): Promise<void> {
    await this.#probing?.catch(() => undefined);
    if (isEmpty()) await this.#firewall.remove();
  }

  /** Why the account can run nothing here; undefined if it can, as far as is known without a probe. */
  problem(accountId: string): string | undefined {
    return accountId !== ROOT_ACCOUNT_ID && this.#isolation?.mode === 'refused'
      ? this.#isolation.reason
      : undefined;
  }

  /** Undefined if the account's instances run as the user that runs Berth. */
  async tenantOf(accountId: string): Promise<Tenant | undefined> {
    if (accountId === ROOT_ACCOUNT_ID) return undefined;
    const { mode, reason } = await this.isolation();
    if (mode === 'none') return undefined;
    if (mode === 'refused') throw ruleError(reason ?? 'other accounts can run nothing here');
    return { user: this.#users.userOf(accountId), namespaces: mode === 'namespaces' };
  }

  /** The same, for a process that starts now: the network is closed to it first. */
  async startingTenantOf(accountId: string): Promise<Tenant | undefined> {
    const tenant = await this.tenantOf(accountId);
    if (tenant !== undefined) await this.#firewall.add(tenant.user.uid, () => this.#users.uids());
    return tenant;
  }
}
