import type { ApiKey } from '../../store/records.ts';
import { hashKey } from '../../support/crypto.ts';
import { BerthError } from '../../support/errors.ts';
import { ROOT_ACCOUNT_ID } from '../accounts/root.ts';
import type { Caller } from '../caller.ts';
import type { Context } from '../context.ts';
import { grantOf, isLive, permits } from './scopes.ts';
import type { Family, Need } from './scopes.ts';

/** Longer texts are no keys of ours and are not worth hashing. */
const LONGEST_KEY = 512;
/** How exact "last used" is; a write for every request would cost more than it tells. */
const USE_RESOLUTION_MS = 60_000;

export interface Visit {
  interface: Caller['interface'];
  family: Family;
  need: Need;
  requestId: string;
  endpointId?: string;
}

/** Knows who is at the door and what they may do. */
export class Gate {
  readonly #context: Context;
  readonly #lastUsed = new Map<string, number>();

  constructor(context: Context) {
    this.#context = context;
  }

  /** Who holds this key. A missing, wrong, expired, disabled or revoked one is answered alike. */
  async identify(key: string | undefined): Promise<ApiKey> {
    if (key === undefined || key === '') throw new BerthError('unauthenticated', 'missing bearer token');
    const found = key.length > LONGEST_KEY ? undefined : await this.#context.store.keys.findByHash(hashKey(key));
    const now = this.#context.clock.now();
    if (found === undefined || !isLive(found, now)) throw new BerthError('unauthenticated', 'invalid API key');
    if (now - (this.#lastUsed.get(found.id) ?? found.lastUsedAt ?? 0) >= USE_RESOLUTION_MS) this.#lastUsed.set(found.id, now);
    return found;
  }

  async admit(key: string | undefined, visit: Visit): Promise<Caller> {
    const record = await this.identify(key);
    if (!permits(grantOf(record, visit.family, visit.endpointId), visit.need)) {
      throw new BerthError('forbidden', `access denied: this key may not ${visit.need} through this interface`);
    }
    return callerOf(record, visit);
  }

  /** Writes down when keys were last used. Called now and then, and at the end. */
  async noteUses(): Promise<void> {
    if (this.#lastUsed.size === 0) return;
    const uses = new Map(this.#lastUsed);
    this.#lastUsed.clear();
    await this.#context.store.keys.noteUse(uses);
  }
}

function callerOf(key: ApiKey, visit: Pick<Visit, 'interface' | 'requestId'>): Caller {
  const fullAccess = key.access === 'all';
  return { accountId: key.accountId, keyId: key.id, operator: fullAccess && key.accountId === ROOT_ACCOUNT_ID, fullAccess, interface: visit.interface, requestId: visit.requestId };
}
