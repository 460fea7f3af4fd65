import type { ApiKey, AuditEntry } from '../domain/records.ts';
import type { Session, SignInLink } from '../domain/session.ts';

export interface SessionStore {
  /** Sessions and links that have ended are deleted. */
  insert(session: Session, audit: AuditEntry): Promise<void>;
  /** With its key, if that still exists and its account is active. */
  findByHash(hash: string): Promise<{ session: Session; key: ApiKey } | undefined>;
  /** Those that have not expired, newest first. */
  list(accountId: string, now: number): Promise<Session[]>;
  /** True where there was one. */
  remove(accountId: string, id: string, audit: AuditEntry): Promise<boolean>;
  saveLastUsed(lastUsed: ReadonlyMap<string, number>): Promise<void>;
  insertLink(link: SignInLink): Promise<void>;
  /** Deletes the link and returns its key. Undefined where there is none, or it has expired. */
  takeLink(hash: string, now: number): Promise<ApiKey | undefined>;
}
