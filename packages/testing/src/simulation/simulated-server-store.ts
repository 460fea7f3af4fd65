import type { ClockStore } from '../../../cloud/src/store/clock-store.ts';
import type { Database } from '../../../cloud/src/store/database.ts';
import { fencedDatabase } from '../../../cloud/src/store/fenced-database.ts';
import type { LeaderElection } from '../../../cloud/src/store/leader-election.ts';
import { LeaseElection } from '../../../cloud/src/store/lease-election.ts';
import { ShardElection } from '../../../cloud/src/store/shard-election.ts';
import type { WakeupBus } from '../../../cloud/src/store/wakeup-bus.ts';
import type { Log } from '../../../cloud/src/support/log.ts';
import type { SteadyClock } from '../../../cloud/src/support/steady-clock.ts';
import { simulatedLeaseTable } from './simulated-lease-table.ts';
import { simulatedShardLeaseTable } from './simulated-shard-lease-table.ts';
import { connect } from './store-connection.ts';
import type { StoreConnectionDeps, UsedStore } from './store-connection.ts';
import type { SimulatedProcess } from './virtual-time.ts';
import type { Elections, SimulatedWorld } from './simulated-world.ts';

/** As over PostgreSQL; other calls wait for minutes. */
const LEASE_CALL_TIMEOUT_MS = 2_000;

/** How one run of a server reaches the database that all servers share. */
export class ServerStore {
  readonly connection: StoreConnectionDeps;
  readonly #world: SimulatedWorld;

  constructor(world: SimulatedWorld, process: SimulatedProcess, isCutOff: () => boolean) {
    const { time, random, storeFaults, isLocal, onStoreWrite, onStoreWriteDone } = world;
    this.#world = world;
    this.connection = {
      time,
      random,
      process,
      faults: storeFaults,
      isCutOff,
      isLocal,
      onWrite: onStoreWrite,
      onDone: onStoreWriteDone,
    };
  }

  elect(leader: string, wakeups: WakeupBus, log: Log): Elections {
    const { shards } = this.#world;
    return {
      leader: this.#electLeader(leader, wakeups, log),
      shards: shards > 1 ? this.#electShards(leader, wakeups, log) : undefined,
    };
  }

  #electLeader(leader: string, wakeups: WakeupBus, log: Log): LeaderElection {
    const { database } = this.#world;
    return new LeaseElection({
      server: leader,
      connect: () =>
        simulatedLeaseTable(
          database,
          () => this.#databaseTime(),
          (calls) => connect(calls, { ...this.connection, timeout: LEASE_CALL_TIMEOUT_MS }),
        ),
      onError: (error) => log.warn({ err: error }, 'the lease could not be renewed'),
      onCutOff: () => undefined,
      onResigned: () => wakeups.publish({ kind: 'resigned' }),
    });
  }

  #electShards(leader: string, wakeups: WakeupBus, log: Log): ShardElection {
    const { database, shards } = this.#world;
    return new ShardElection({
      shards,
      server: leader,
      connect: () =>
        simulatedShardLeaseTable(
          database,
          shards,
          () => this.#databaseTime(),
          (calls) => connect(calls, { ...this.connection, timeout: LEASE_CALL_TIMEOUT_MS }),
        ),
      onError: (error) => log.warn({ err: error }, 'the leases of shards could not be renewed'),
      onReleased: () => wakeups.publish({ kind: 'resigned' }),
    });
  }

  open(server: string, elections: Elections, wakeups: WakeupBus, serverClock: SteadyClock): UsedStore {
    const { database, isLocal, openStore, webhookLeases } = this.#world;
    const opened = openStore(elections, wakeups);
    const store = { ...opened, jobs: webhookLeases.observe(opened.jobs, server, serverClock) };
    if (isLocal) return store;
    const { leading } = store;
    const clock = this.#databaseClock(store.clock, database);
    const fencedClock = this.#databaseClock(leading.clock, fencedDatabase(database, elections.leader));
    return { ...store, clock, leading: { ...leading, clock: fencedClock } };
  }

  #databaseTime(): number {
    const { time, databaseClock } = this.#world;
    return Math.floor(time.timeOfDay + databaseClock.ahead);
  }

  /** The clock of PostgreSQL, and what the leading server writes about it. */
  #databaseClock(clock: ClockStore, database: Database): ClockStore {
    const { databaseClock } = this.#world;
    return {
      ...clock,
      databaseTime: async () => ({ now: this.#databaseTime(), shared: databaseClock.shared }),
      saveShared: (shared) =>
        database.write(function* () {
          databaseClock.shared = shared;
        }),
    };
  }
}
