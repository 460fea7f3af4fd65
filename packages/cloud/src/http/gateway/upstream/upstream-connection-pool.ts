import { connect } from 'node:net';
import { UpstreamConnection } from './upstream-connection.ts';

/**
 * How long an unused connection to a worker is kept. Servers close idle ones after a while
 * (the common ones after 2 to 5 s), and a request that meets such a close is lost: it may not
 * be sent twice. So ours are gone first.
 */
const IDLE_MS = 1_500;
const SWEEP_MS = 500;
/** All connections are read into this: what has come is told and passed on, or copied, before anything else is read. */
const SHARED_READ_BUFFER = Buffer.allocUnsafeSlow(64 * 1024);
/** To one worker. */
const MAX_IDLE = 1_024;

/** Connections to workers, kept for the next request. */
export class UpstreamConnectionPool {
  readonly #connectMs: number;
  readonly #idle = new Map<string, UpstreamConnection[]>();
  #sweeper: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(connectMs: number) {
    this.#connectMs = connectMs;
  }

  /** A connection that is free, or a new one. */
  acquire(host: string, port: number): UpstreamConnection {
    const place = `${host} ${port}`;
    const idle = this.#idle.get(place);
    const now = Date.now();
    for (let connection = idle?.pop(); connection !== undefined; connection = idle?.pop()) {
      if (!connection.socket.destroyed && Math.abs(now - connection.idleSince) < IDLE_MS) return connection;
      connection.destroy();
    }
    // Measured: a buffer for every read, and a stream around it, cost a twentieth of what a request costs here.
    const callback = (size: number): boolean => {
      connection.read(SHARED_READ_BUFFER.subarray(0, size));
      return true;
    };
    const connection: UpstreamConnection = new UpstreamConnection(
      place,
      connect({ host, port, noDelay: true, onread: { buffer: SHARED_READ_BUFFER, callback } }),
      this.#connectMs,
      (gone) => this.#drop(gone),
    );
    return connection;
  }

  /** A new one, which can be handed over to whoever speaks another protocol on it. */
  open(host: string, port: number): UpstreamConnection {
    const connection = new UpstreamConnection(
      `${host} ${port}`,
      connect({ host, port, noDelay: true }),
      this.#connectMs,
      (gone) => this.#drop(gone),
    );
    return connection.readAsStream();
  }

  /** Its request is over. */
  release(connection: UpstreamConnection): void {
    if (!connection.release()) return;
    if (this.#closed) return connection.destroy();
    const { upstreamKey } = connection;
    let idle = this.#idle.get(upstreamKey);
    if (idle === undefined) {
      idle = [];
      this.#idle.set(upstreamKey, idle);
    }
    if (idle.length >= MAX_IDLE) return connection.destroy();
    connection.idleSince = Date.now();
    idle.push(connection);
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS);
  }

  /** Unused ones go now, and those in use when their request is over. */
  close(): void {
    this.#closed = true;
    for (const idle of this.#idle.values()) for (const connection of idle) connection.destroy();
    this.#idle.clear();
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }

  #drop(gone: UpstreamConnection): void {
    const idle = this.#idle.get(gone.upstreamKey);
    const at = idle?.indexOf(gone) ?? -1;
    if (at !== -1) idle?.splice(at, 1);
  }

  #sweep(): void {
    const now = Date.now();
    for (const [place, idle] of this.#idle) {
      const kept = idle.filter((connection) => {
        const fresh = Math.abs(now - connection.idleSince) < IDLE_MS;
        if (!fresh) connection.destroy();
        return fresh;
      });
      if (kept.length === 0) this.#idle.delete(place);
      else this.#idle.set(place, kept);
    }
    if (this.#idle.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}
