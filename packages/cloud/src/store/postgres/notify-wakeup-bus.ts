import { createRequire } from 'node:module';
import type * as Pg from 'pg';
import type { Client, Pool } from 'pg';
import { LISTENER_OPTIONS } from './session-options.ts';
import type { Wakeup, WakeupBus } from '../wakeup-bus.ts';

const CHANNEL = 'berth';
/** PostgreSQL carries at most 8000 bytes in one notification. */
const MAX_MESSAGE_BYTES = 7_500;
/** What a message holds beside its wake-ups. */
const ENVELOPE_BYTES = 60;
const HEARTBEAT_INTERVAL_MS = 5_000;
/** A server that has not said hello for this long is gone; a server that is alone sends nothing. */
const PEER_TIMEOUT_MS = 15_000;
const RECONNECT_MS = 500;
/**
 * Every hello comes back to its sender. Where none has for this long, the connection that listens is dead.
 */
const SILENCE_TIMEOUT_MS = 15_000;

interface Options {
  url: string;
  server: string;
  pool: Pool;
  onError(error: Error): void;
}

interface Message {
  from: string;
  wakeups: Wakeup[];
}

/**
 * Carries wake-ups between servers with NOTIFY: those of one turn of the event loop go together, each once.
 */
export async function notifyWakeupBus({ url, server, pool, onError }: Options): Promise<WakeupBus> {
  const pg = createRequire(import.meta.url)('pg') as typeof Pg;
  const handlers: ((wakeup: Wakeup) => void)[] = [];
  let waiting = new Map<string, Wakeup>();
  let scheduled = false;
  /** A wake-up could not be sent. The next message makes every listener check again. */
  let hasFailed = false;
  let peerHeardAt = -Infinity;
  let heardAt = performance.now();
  let closed = false;
  let client: Client | undefined;
  /** Gives up the connection that listens. */
  let deaf = (): void => undefined;
  let reconnecting: NodeJS.Timeout | undefined;

  const receive = (payload: string): void => {
    heardAt = performance.now();
    const { from, wakeups } = JSON.parse(payload) as Message;
    if (from === server) return;
    const isNew = performance.now() - peerHeardAt > PEER_TIMEOUT_MS;
    peerHeardAt = performance.now();
    // What was published while this server believed to be alone was not sent.
    if (isNew) send([{ kind: 'missed' }]);
    for (const wakeup of wakeups) for (const handler of handlers) handler(wakeup);
  };

  const send = (wakeups: Wakeup[]): void => {
    if (closed) return;
    const sent: Wakeup[] = hasFailed ? [{ kind: 'missed' }, ...wakeups] : wakeups;
    hasFailed = false;
    pool
      .query('select pg_notify($1, $2)', [
        CHANNEL,
        JSON.stringify({ from: server, wakeups: sent } satisfies Message),
      ])
      .catch((error: Error) => {
        hasFailed ||= sent.length > 0;
        onError(error);
      });
  };

  const flush = (): void => {
    scheduled = false;
    const wakeups = [...waiting.values()];
    waiting = new Map();
    for (const message of splitIntoMessages(wakeups)) send(message);
  };

  const connect = async (): Promise<void> => {
    const next = new pg.Client({
      connectionString: url,
      application_name: 'berth wakeups',
      options: LISTENER_OPTIONS,
      keepAlive: true,
      connectionTimeoutMillis: SILENCE_TIMEOUT_MS,
    });
    const lost = (error?: Error): void => {
      if (closed || client !== next) return;
      client = undefined;
      deaf = () => undefined;
      if (error !== undefined) onError(error);
      reconnecting = setTimeout(() => void connect().catch((failure: Error) => lost(failure)), RECONNECT_MS);
    };
    client = next;
    heardAt = performance.now();
    deaf = () => {
      lost(new Error('nothing was heard on the connection for wake-ups; opening another'));
      next.end().catch(() => undefined);
    };
    next.on('error', lost);
    next.on('end', () => lost());
    next.on('notification', ({ payload }) => receive(payload ?? '{"from":"","wakeups":[]}'));
    try {
      await next.connect();
      await next.query(`listen ${CHANNEL}`);
      // Wake-ups may have been missed while there was no connection.
      for (const handler of handlers) handler({ kind: 'missed' });
    } catch (error) {
      lost(error instanceof Error ? error : new Error(String(error)));
      await next.end().catch(() => undefined);
    }
  };

  await connect();
  send([]);
  const hello = setInterval(() => {
    if (performance.now() - heardAt > SILENCE_TIMEOUT_MS) deaf();
    send([]);
  }, HEARTBEAT_INTERVAL_MS);
  hello.unref();

  return {
    publish: (wakeup) => {
      if (performance.now() - peerHeardAt > PEER_TIMEOUT_MS) return;
      waiting.set(JSON.stringify(wakeup), wakeup);
      if (scheduled) return;
      scheduled = true;
      setImmediate(flush);
    },
    subscribe: (handler) => void handlers.push(handler),
    close: async () => {
      closed = true;
      clearInterval(hello);
      clearTimeout(reconnecting);
      await client?.end();
    },
  };
}

function splitIntoMessages(wakeups: Wakeup[]): Wakeup[][] {
  const messages: Wakeup[][] = [];
  let size = MAX_MESSAGE_BYTES;
  for (const wakeup of wakeups) {
    const length = Buffer.byteLength(JSON.stringify(wakeup)) + 1;
    if (size + length > MAX_MESSAGE_BYTES) {
      messages.push([]);
      size = ENVELOPE_BYTES;
    }
    size += length;
    messages.at(-1)?.push(wakeup);
  }
  return messages;
}
