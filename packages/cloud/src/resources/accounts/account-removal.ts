import { SYSTEM_CALLER } from '../../domain/caller.ts';
import type { Caller } from '../../domain/caller.ts';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import type { Store } from '../../store/store.ts';
import type { Clusters } from '../clusters/clusters.ts';
import type { Endpoints } from '../endpoints/endpoints.ts';
import type { FlashApps } from '../flash/flash-apps.ts';
import type { Images } from '../images/images.ts';
import type { Pods } from '../pods/pods.ts';
import type { Volumes } from '../volumes/volumes.ts';

export interface AccountRemovalDeps {
  store: Store;
  clusters: Clusters;
  pods: Pods;
  endpoints: Endpoints;
  volumes: Volumes;
  images: Images;
  flash: FlashApps;
  /** Deletes the log of an instance that has ended. */
  deleteLog(dataCenterId: string, instanceId: string): Promise<void>;
  log: Log;
}

/**
 * Deletes accounts with all that they own. Every step can be repeated, and the row of the account, with the
 * status `deleting`, goes last: what a crash interrupts is finished after the next start.
 */
export class AccountRemoval {
  readonly #deps: AccountRemovalDeps;
  readonly #running = new Map<string, Promise<boolean>>();

  constructor(deps: AccountRemovalDeps) {
    this.#deps = deps;
  }

  /** Deletes what is left of an account. False if something cannot go yet; the next round tries again. */
  remove(accountId: string): Promise<boolean> {
    const running = this.#running.get(accountId);
    if (running !== undefined) return running;
    const removing = this.#remove(accountId).finally(() => this.#running.delete(accountId));
    this.#running.set(accountId, removing);
    return removing;
  }

  /** Finishes the removals that were begun. */
  async finishAll(): Promise<void> {
    for (const { id, status } of await this.#deps.store.accounts.list()) {
      if (status !== 'deleting') continue;
      await this.remove(id).catch((error: unknown) =>
        this.#deps.log.warn(
          { err: error, accountId: id },
          'an account could not be deleted yet; trying again',
        ),
      );
    }
  }

  async #remove(accountId: string): Promise<boolean> {
    const { store, clusters, pods, endpoints, volumes, images, flash, deleteLog } = this.#deps;
    const caller: Caller = { ...SYSTEM_CALLER, accountId, operator: false, requestId: 'account removal' };
    for (const { id } of await clusters.list(caller)) await ignoreMissing(clusters.remove(caller, id));
    const owned = await pods.list(caller);
    await pods.endAll(accountId, 'terminate');
    for (const { id, dataCenterId } of owned) await deleteLog(dataCenterId, id);
    for (const { id } of await endpoints.list(caller)) await ignoreMissing(endpoints.remove(caller, id));
    for (const { id } of await volumes.list(caller)) await ignoreMissing(volumes.remove(caller, id));
    await images.removeAll(accountId);
    for (const { id } of await flash.apps(caller)) await ignoreMissing(flash.removeApp(caller, id));
    return store.accounts.remove(accountId);
  }
}

/** Another server may have deleted it meanwhile. */
async function ignoreMissing(removal: Promise<unknown>): Promise<void> {
  try {
    await removal;
  } catch (error) {
    if (!(error instanceof BerthError && error.code === 'not-found')) throw error;
  }
}
