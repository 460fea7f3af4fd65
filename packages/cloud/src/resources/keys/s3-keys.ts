import type { S3Key } from '../../domain/records.ts';
import { wallNow } from '../../support/clock.ts';
import { BerthError, notFound, ruleError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { S3_ACCESS_ID_PREFIX } from '../../domain/s3-names.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import { checkKeyName } from './api-keys.ts';

const RESOURCE = 'S3 key';
const SECRET_PREFIX = 'rps_';
const ACCESS_ID_LENGTH = 24;
const SECRET_LENGTH = 44;

export interface NewS3Key {
  name: string;
  access: S3Key['access'];
  expiresAt?: number | null;
}

/** Creates, lists and revokes the keys that sign requests for the objects of network volumes. */
export class S3Keys {
  readonly #context: ResourceContext;

  constructor(context: ResourceContext) {
    this.#context = context;
  }

  /** Only this result has the secret; it cannot be read again. */
  async create(
    caller: Caller,
    { name, access, expiresAt = null }: NewS3Key,
    accountId = caller.accountId,
  ): Promise<{ record: S3Key; secret: string }> {
    const { store, clock, ids } = this.#context;
    await this.#checkManager(caller, accountId);
    checkKeyName(name);
    if (expiresAt !== null && expiresAt <= wallNow(clock))
      throw ruleError('the expiry must be in the future');
    const record: S3Key = {
      id: S3_ACCESS_ID_PREFIX + ids.resource(ACCESS_ID_LENGTH),
      accountId,
      name,
      access,
      createdAt: clock.now(),
      lastUsedAt: null,
      expiresAt,
    };
    const secret = SECRET_PREFIX + ids.resource(SECRET_LENGTH);
    await store.s3Keys.insert(
      record,
      secret,
      auditEntry(this.#context, caller, 'create', RESOURCE, record.id, [], accountId),
    );
    return { record, secret };
  }

  async list(caller: Caller, accountId = caller.accountId): Promise<S3Key[]> {
    if (accountId !== caller.accountId) await this.#checkManager(caller, accountId);
    return this.#context.store.s3Keys.list(accountId);
  }

  /** Takes effect with the next request. */
  async revoke(caller: Caller, id: string): Promise<void> {
    const { store } = this.#context;
    const accountId = (await store.s3Keys.findWithSecret(id))?.key.accountId;
    if (accountId === undefined || (accountId !== caller.accountId && !caller.operator))
      throw notFound(RESOURCE, id);
    await this.#checkManager(caller, accountId);
    if (
      !(await store.s3Keys.remove(
        accountId,
        id,
        auditEntry(this.#context, caller, 'revoke', RESOURCE, id, [], accountId),
      ))
    )
      throw notFound(RESOURCE, id);
    this.#context.events.publish('keys.changed', { source: 'request' });
  }

  async #checkManager(caller: Caller, accountId: string): Promise<void> {
    if (!caller.fullAccess) throw new BerthError('forbidden', 'only a key with full access may manage keys');
    if (accountId === caller.accountId) return;
    if (!caller.operator || (await this.#context.store.accounts.find(accountId)) === undefined)
      throw notFound('account', accountId);
  }
}
