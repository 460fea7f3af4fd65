import type { ShardMember } from './shard-share.ts';
import type { Steps } from './sql.ts';

/** A lease as its holder knows it. */
export interface HeldShard {
  shard: number;
  epoch: number;
}

/** A lease as it is in the database. */
export interface ShardLease extends HeldShard {
  /** Empty where nobody holds it. */
  holder: string;
  /** If it is not renewed; 0 where nobody holds it. */
  heldForMs: number;
}

export interface ShardLeases {
  /** In the order of the shards. */
  leases: ShardLease[];
  /** The servers that live, this one included. */
  members: ShardMember[];
}

/** The leases of the shards, as one server reaches them. Calls reject where there is no answer in time. */
export interface ShardLeaseStore {
  /** Extends these leases where they are still held, says that this server lives, and reads them all. */
  renew(server: string, hostId: string, held: readonly HeldShard[]): Promise<ShardLeases>;
  /** Takes these where they are free. Answers those that it got. */
  takeOver(server: string, shards: readonly number[]): Promise<HeldShard[]>;
  release(server: string, held: readonly HeldShard[]): Promise<void>;
  /** This server takes no part any more. */
  leave(server: string): Promise<void>;
  /** As for the lease of the leader: whether this server holds it, to the end of the transaction. */
  fence(server: string, held: HeldShard): Steps<boolean>;
  /** After a failure: the next call uses another connection. */
  reconnect(): void;
  close(): Promise<void>;
}
