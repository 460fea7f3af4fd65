import { createRequire } from 'node:module';
import type * as Pg from 'pg';
import type { LeaderElection } from '../leader-election.ts';

/** Held by one session at a time; PostgreSQL gives it back when that session ends, however it ends. */
const LEADER_LOCK_ID = 8484002;
const TRY_EVERY_MS = 2_000;

/** Of several servers on one database one leads: the one whose session holds the lock. */
export function advisoryLockElection(url: string, onError: (error: Error) => void): LeaderElection {
  const pg = createRequire(import.meta.url)('pg') as typeof Pg;
  let closed = false;
  let client: Pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;
  let lead: () => void = () => undefined;
  let lose: () => void = () => undefined;
  let leading = false;

  const lost = (): void => {
    client = undefined;
    if (leading) lose();
    leading = false;
    if (!closed) timer = setTimeout(() => void attempt(), TRY_EVERY_MS);
  };

  const attempt = async (): Promise<void> => {
    try {
      if (client === undefined) {
        const next = new pg.Client({ connectionString: url, application_name: 'berth leadership' });
        next.on('error', (error) => {
          onError(error);
          if (client === next) lost();
        });
        await next.connect();
        // Closed while it connected: a connection that nobody ends would keep the process.
        if (closed) return await next.end();
        client = next;
      }
      const answer = await client.query<{ held: boolean }>('select pg_try_advisory_lock($1) as held', [
        LEADER_LOCK_ID,
      ]);
      if (closed) return;
      if (answer.rows[0]?.held === true) {
        leading = true;
        lead();
      } else timer = setTimeout(() => void attempt(), TRY_EVERY_MS);
    } catch (error) {
      if (closed) return;
      onError(error instanceof Error ? error : new Error(String(error)));
      lost();
    }
  };

  return {
    start: (onLead, onLost) => {
      lead = onLead;
      lose = onLost;
      void attempt();
    },
    close: async () => {
      closed = true;
      clearTimeout(timer);
      await client?.end();
    },
  };
}
