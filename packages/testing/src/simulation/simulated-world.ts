import type { Endpoint } from '../../../cloud/src/domain/records.ts';
import type { SharedTime } from '../../../cloud/src/store/clock-store.ts';
import type { Database } from '../../../cloud/src/store/database.ts';
import type { LeaderElection } from '../../../cloud/src/store/leader-election.ts';
import type { ShardElection } from '../../../cloud/src/store/shard-election.ts';
import type { Store } from '../../../cloud/src/store/store.ts';
import type { WakeupBus } from '../../../cloud/src/store/wakeup-bus.ts';
import type { Ids } from '../../../cloud/src/support/ids.ts';
import type { Log } from '../../../cloud/src/support/log.ts';
import type { SeededRandom } from '../safety/seeded-random.ts';
import type { SimulatedEngine } from './simulated-engine.ts';
import type { SimulatedReceiver } from './simulated-receiver.ts';
import type { SimulatedWakeups } from './simulated-wakeups.ts';
import type { WebhookLeases } from './webhook-leases.ts';
import type { StoreFaults } from './store-connection.ts';
import type { VirtualTime } from './virtual-time.ts';

export const DATA_CENTER = 'SIM-1';

/** In what a server takes part. */
export interface Elections {
  leader: LeaderElection;
  /** Undefined where there is one shard. */
  shards: ShardElection | undefined;
}

/** What all servers of a run share. */
export interface SimulatedWorld {
  time: VirtualTime;
  random: SeededRandom;
  database: Database;
  /** What a server with this election sees of the database. */
  openStore(elections: Elections, wakeups: WakeupBus): Store;
  storeFaults: StoreFaults;
  /** One server with SQLite; else several, with PostgreSQL. */
  isLocal: boolean;
  /** Into how many the endpoints are divided; 1 where the leader manages the workers of all. */
  shards: number;
  engine: SimulatedEngine;
  wakeups: SimulatedWakeups;
  receiver: SimulatedReceiver;
  webhookLeases: WebhookLeases;
  endpoints: Map<string, Endpoint>;
  /** How much the clock of the database is ahead, and what the leading server wrote about it. */
  databaseClock: { ahead: number; shared: SharedTime | undefined };
  ids: Ids;
  deliveryId(): string;
  log(server: string): Log;
  /** A call of the store that may write is executed, or done. */
  onStoreWrite(): void;
  onStoreWriteDone(): void;
}
