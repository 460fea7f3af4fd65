import type { Database } from '../../../cloud/src/store/database.ts';
import { LEASE_MS, LONGEST_LEASE_MS } from '../../../cloud/src/store/lease-store.ts';
import type { LeaseStore } from '../../../cloud/src/store/lease-store.ts';
import { execute, row, sql } from '../../../cloud/src/store/sql.ts';

type LeaseCalls = Omit<LeaseStore, 'fence' | 'reconnect' | 'close'>;

/**
 * The statements of the lease by the simulated clock of the database. `connect` puts the network of a server
 * between.
 */
export function simulatedLeaseTable(
  database: Database,
  now: () => number,
  connect: (calls: LeaseCalls) => LeaseCalls,
): LeaseStore {
  return {
    ...connect({
      heldForMs: async () => {
        const found = await database.read(() =>
          row<{ expires_at: number }>(sql`select expires_at from leadership`),
        );
        const left = Number(found?.expires_at ?? 0) - now();
        return left > LONGEST_LEASE_MS ? 0 : Math.max(0, left);
      },

      takeOver: async (server) =>
        (
          await database.write(() =>
            row<{ epoch: number }>(
              sql`update leadership set holder = ${server}, epoch = epoch + 1, expires_at = ${now() + LEASE_MS}
                where expires_at <= ${now()} or expires_at > ${now() + LONGEST_LEASE_MS} returning epoch`,
            ),
          )
        )?.epoch,

      renew: async (server, epoch) =>
        (await database.write(() =>
          execute(
            sql`update leadership set expires_at = ${now() + LEASE_MS} where holder = ${server} and epoch = ${epoch}`,
          ),
        )) === 1,

      release: async (server, epoch) => {
        await database.write(() =>
          execute(sql`update leadership set expires_at = 0 where holder = ${server} and epoch = ${epoch}`),
        );
      },
    }),
    fence: function* (server, epoch) {
      const held = yield* row(
        database.dialect === 'postgres'
          ? sql`select 1 as held from leadership where holder = ${server} and epoch = ${epoch} for key share`
          : sql`select 1 as held from leadership where holder = ${server} and epoch = ${epoch}`,
      );
      return held !== undefined;
    },
    reconnect: () => undefined,
    close: async () => undefined,
  };
}
