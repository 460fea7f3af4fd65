import type { Database } from './database.ts';
import type { LeaderElection } from './leader-election.ts';

/** The same database, whose writes only the leading server can make. */
export function fencedDatabase(database: Database, election: LeaderElection): Database {
  return {
    ...database,
    write: (steps) =>
      database.write(function* () {
        yield* election.fence();
        return yield* steps();
      }),
  };
}
