import { createRequire } from 'node:module';
import type * as Pg from 'pg';
import { SESSION_OPTIONS } from './session-options.ts';

const ANSWER_TIMEOUT_MS = 2_000;
/**
 * A transaction of a holder that stands still is ended by the database, so that it cannot keep others from taking
 * over.
 */
export const STANDSTILL_MS = 1_800;

export interface LeaseConnection {
  connected(): Promise<Pg.Client>;
  /** The one that is open, if any. */
  readonly current: Pg.Client | undefined;
  reconnect(): void;
  close(): Promise<void>;
}

/** A connection of its own, so that a lease is renewed whatever else waits for the database. */
export function leaseConnection(url: string, onDisconnected: (error: Error) => void): LeaseConnection {
  const pg = createRequire(import.meta.url)('pg') as typeof Pg;
  let current: Pg.Client | undefined;
  return {
    connected: async () => {
      if (current !== undefined) return current;
      const client = new pg.Client({
        connectionString: url,
        application_name: 'berth leadership',
        options: SESSION_OPTIONS,
        keepAlive: true,
        query_timeout: ANSWER_TIMEOUT_MS,
        connectionTimeoutMillis: ANSWER_TIMEOUT_MS,
      });
      current = client;
      client.on('error', (error) => {
        if (current === client) onDisconnected(error);
      });
      await client.connect();
      return client;
    },
    get current() {
      return current;
    },
    reconnect: () => {
      const client = current;
      current = undefined;
      client?.end().catch(() => undefined);
    },
    close: async () => {
      await current?.end().catch(() => undefined);
    },
  };
}
