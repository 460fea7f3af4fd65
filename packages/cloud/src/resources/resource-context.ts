import type { AuditedAction, AuditedResource } from '../domain/audit.ts';
import type { AuditEntry, FieldChange } from '../domain/records.ts';
import type { CloudEventBus } from '../domain/events.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../support/clock.ts';
import type { DiskSpace } from '../support/disk-space.ts';
import type { Ids } from '../support/ids.ts';
import type { Caller } from '../domain/caller.ts';
import type { QuotaNeeds, AccountQuotas } from './accounts/account-quotas.ts';
import type { DiskShares } from './accounts/disk-shares.ts';

/** Dependencies that all resource services share. */
export interface ResourceContext {
  store: Store;
  clock: Clock;
  ids: Ids;
  events: CloudEventBus;
  /** The limits of accounts; without it there are none. */
  quotas?: Pick<AccountQuotas, 'within'>;
  /** The disk of the data folder; without it, room is not checked before data is written. */
  disk?: Pick<DiskSpace, 'checkRoom'>;
  /** What each account may upload while that disk is nearly full. */
  diskShares?: Pick<DiskShares, 'take'>;
}

/** Runs the work if the limits of the account and the installation leave room for it. */
export function withinQuotas<T>(
  { quotas }: ResourceContext,
  accountId: string,
  needs: QuotaNeeds,
  work: () => Promise<T>,
): Promise<T> {
  return quotas === undefined ? work() : quotas.within(accountId, needs, work);
}

/**
 * The audit entry of one change. It belongs to the account that owns the resource, since an operator can
 * change resources of other accounts.
 */
export function auditEntry(
  context: ResourceContext,
  caller: Caller,
  action: AuditedAction,
  resource: AuditedResource,
  resourceId: string,
  changes: FieldChange[] = [],
  accountId = caller.accountId,
): AuditEntry {
  return {
    at: context.clock.now(),
    accountId,
    keyId: caller.keyId,
    interface: caller.interface,
    requestId: caller.requestId,
    action,
    resource,
    resourceId,
    changes,
  };
}

/** The fields that differ between two versions of a record. For hidden fields, only the name is recorded. */
export function diffRecords<T extends object>(before: T, after: T, hidden: (keyof T)[] = []): FieldChange[] {
  const changes: FieldChange[] = [];
  for (const field of Object.keys(after) as (keyof T & string)[]) {
    const [from, to] = [before[field], after[field]];
    if (field === 'updatedAt' || JSON.stringify(from) === JSON.stringify(to)) continue;
    changes.push(hidden.includes(field) ? { field } : { field, from, to });
  }
  return changes;
}
