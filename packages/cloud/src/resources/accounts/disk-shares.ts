import { diskShareError } from '../../domain/quotas.ts';

export interface DiskSharesDeps {
  /** How much there is to share out; undefined while there is plenty. */
  scarceBytes(): number | undefined;
  accounts(): number;
}

/**
 * What accounts upload while the disk is nearly full: each gets its share of what is left, so that none takes
 * the last space of the others. Nothing is shared out where there is one account.
 */
export class DiskShares {
  readonly #deps: DiskSharesDeps;
  readonly #taken = new Map<string, number>();

  constructor(deps: DiskSharesDeps) {
    this.#deps = deps;
  }

  /** Throws if the account has its share already. Call what it returns if the bytes were not written. */
  take(accountId: string, bytes: number): () => void {
    const { scarceBytes, accounts } = this.#deps;
    const scarce = scarceBytes();
    if (scarce === undefined) this.#taken.clear();
    const count = accounts();
    if (scarce === undefined || count < 2) return () => undefined;
    const share = scarce / count;
    const used = this.#taken.get(accountId) ?? 0;
    if (used + bytes > share) throw diskShareError('uploads', used + bytes, share);
    this.#taken.set(accountId, used + bytes);
    return () => this.#taken.set(accountId, Math.max(0, (this.#taken.get(accountId) ?? 0) - bytes));
  }
}
