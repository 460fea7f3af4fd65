import type { Database } from './database.ts';
import type { LeaderElection } from './leader-election.ts';

/** The same database, whose writes only the holder of a lease can make: the leading server, or that of a shard. */
export function fencedDatabase(database: Database, election: Pick<LeaderElection, 'fence'>): Database {
  return {
    ...database,
    write: (steps) =>
      database.write(function* () {
        yield* election.fence();
        return yield* steps();
      }),
  };
}
