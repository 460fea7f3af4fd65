import type { Steps } from './sql.ts';

/** Without a renewal the lead is free after this time, by the clock of the database. */
export const LEASE_MS = 2_500;
/**
 * No lease is longer. Servers of version 0.2.0 take it for 3 s: while one of them leads, another version must
 * not think that the clock was set back.
 */
export const LONGEST_LEASE_MS = 3_000;

/** The row that says who leads, as one server reaches it. Calls reject where there is no answer in time. */
export interface LeaseStore {
  /**
   * For how long somebody holds the lease at most if it is not renewed; 0 where it is free. One that ends later
   * than a lease can last is free: the clock of the database was set back, and its holder may have died since.
   */
  heldForMs(): Promise<number>;
  /** Takes a free lease. Answers the epoch of the new holder; undefined where another server was faster. */
  takeOver(server: string): Promise<number | undefined>;
  /** Whether it is still held, and was extended. */
  renew(server: string, epoch: number): Promise<boolean>;
  release(server: string, epoch: number): Promise<void>;
  /**
   * First step of a transaction: whether this server leads. Where it does, nobody takes over before the
   * transaction has ended.
   */
  fence(server: string, epoch: number): Steps<boolean>;
  /** After a failure: the next call uses another connection. */
  reconnect(): void;
  close(): Promise<void>;
}
