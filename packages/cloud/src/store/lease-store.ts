import type { Steps } from './sql.ts';

/** Without a renewal the lead is free after this time, by the clock of the database. */
export const LEASE_MS = 3_000;

/** The row that says who leads, as one server reaches it. Calls reject where there is no answer in time. */
export interface LeaseStore {
  /**
   * Whether nobody holds the lease. One that ends later than a lease can last is not held: the clock of the
   * database was set back, and its holder may have died since.
   */
  isFree(): Promise<boolean>;
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
