import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BerthError } from '../../../support/errors.ts';
import type { FileOwner } from '../../../support/file-owner.ts';
import type { UserRange } from '../../../support/user-range.ts';

/**
 * The user of each account: a file per user id, whose content is the account's id. A file is created once and
 * never deleted, so an account keeps its user over restarts, and no user passes to another account whose
 * files might remain. Several servers may share the folder: only one of them can create a file.
 */
export class AccountUsers {
  readonly #folder: string;
  readonly #range: UserRange;
  readonly #byAccount = new Map<string, FileOwner>();

  constructor(folder: string, range: UserRange) {
    this.#folder = folder;
    this.#range = range;
  }

  /** The user of the account, allocated at the first call. The group has the same number. */
  userOf(accountId: string): FileOwner {
    const known = this.#byAccount.get(accountId);
    if (known !== undefined) return known;
    const user = this.#find(accountId) ?? this.#allocate(accountId);
    this.#byAccount.set(accountId, user);
    return user;
  }

  /** The users of all accounts that have one. */
  uids(): number[] {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    return readdirSync(this.#folder)
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  }

  #find(accountId: string): FileOwner | undefined {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const name = readdirSync(this.#folder).find((file) => this.#accountIn(file) === accountId);
    return name === undefined ? undefined : owner(Number(name));
  }

  #accountIn(name: string): string | undefined {
    return /^\d+$/.test(name) ? readFileSync(join(this.#folder, name), 'utf8').trim() : undefined;
  }

  /**
   * Begins at a place that follows from the folder and the account: two installations on one machine should
   * not give their accounts the same users.
   */
  #allocate(accountId: string): FileOwner {
    const { first, last } = this.#range;
    const size = last - first + 1;
    const begin = createHash('sha256').update(`${this.#folder}\n${accountId}`).digest().readUInt32BE(0);
    for (let tries = 0; tries < size; tries += 1) {
      const uid = first + ((begin + tries) % size);
      if (this.#claim(uid, accountId)) return owner(uid);
    }
    throw new BerthError(
      'unavailable',
      `all user ids from ${first} to ${last} belong to accounts; set process.users to a larger range`,
    );
  }

  #claim(uid: number, accountId: string): boolean {
    try {
      writeFileSync(join(this.#folder, String(uid)), `${accountId}\n`, {
        flag: 'wx',
        mode: 0o600,
        flush: true,
      });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      return this.#accountIn(String(uid)) === accountId;
    }
  }
}

function owner(uid: number): FileOwner {
  return { uid, gid: uid };
}
