import type { AuditEntry, OwnedRecord, PageRequest } from '../domain/records.ts';

/** Things of one kind that accounts own. Someone else's thing is simply not there. */
export interface Collection<T extends OwnedRecord> {
  insert(record: T, audit: AuditEntry): Promise<void>;
  find(accountId: string, id: string): Promise<T | undefined>;
  /** Newest first; all of them without a page. */
  list(accountId: string, page?: PageRequest): Promise<T[]>;
  /**
   * Reads the record, asks `next` what it becomes, and writes that: no other change comes between.
   * `next` may throw to refuse. Undefined where there is no such record.
   */
  change(accountId: string, id: string, next: (current: T) => AuditedChange<T>): Promise<T | undefined>;
  /** True where there was one. */
  remove(accountId: string, id: string, audit: AuditEntry): Promise<boolean>;
}

export interface AuditedChange<T> {
  record: T;
  audit: AuditEntry;
}
