import { connect } from 'node:net';
import { UpstreamConnection } from './upstream-connection.ts';

/**
 * How long an unused connection to a worker is kept. Servers close idle connections after a while
 * (the common ones after 2 to 5 s), and a request that meets such a close is lost: it must not
 * be sent twice. So the gateway closes them earlier.
 */
const IDLE_MS = 1_500;
const SWEEP_MS = 500;
/**
 * All connections are read into this buffer: received bytes are passed on, or copied, before the next read.
 */
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

  /** An idle connection, or a new one. */
  acquire(host: string, port: number): UpstreamConnection {
    const upstreamKey = `${host} ${port}`;
    const idle = this.#idle.get(upstreamKey);
    const now = performance.now();
    for (let connection = idle?.pop(); connection !== undefined; connection = idle?.pop()) {
      if (!connection.socket.destroyed && Math.abs(now - connection.idleSince) < IDLE_MS) return connection;
      connection.destroy();
    }
    // Measured: a new buffer for every read, and a stream around it, take a twentieth of the time of a
    // request.
    const callback = (size: number): boolean => {
      connection.receive(SHARED_READ_BUFFER.subarray(0, size));
      return true;
    };
    const connection: UpstreamConnection = new UpstreamConnection(
      upstreamKey,
      connect({ host, port, noDelay: true, onread: { buffer: SHARED_READ_BUFFER, callback } }),
      this.#connectMs,
      (broken) => this.#remove(broken),
    );
    return connection;
  }

  /** A new connection, which can be handed over after an upgrade. */
  open(host: string, port: number): UpstreamConnection {
    const connection = new UpstreamConnection(
      `${host} ${port}`,
      connect({ host, port, noDelay: true }),
      this.#connectMs,
      (broken) => this.#remove(broken),
    );
    return connection.readAsStream();
  }

  /**
   * The request of a connection is over. A worker may have sent more than its response. Such bytes
   * must never reach the next client, so the connection is kept only after the event loop has
   * polled it once more: unread bytes, then or later, close it.
   */
  release(connection: UpstreamConnection): void {
    if (!connection.release()) return;
    if (this.#closed) return connection.destroy();
    // The first runs after the current poll, the second after the next one.
    setImmediate(() => setImmediate(() => this.#keep(connection)));
  }

  /** Closes idle connections now, and those in use when their request is over. */
  close(): void {
    this.#closed = true;
    for (const idle of this.#idle.values()) for (const connection of idle) connection.destroy();
    this.#idle.clear();
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }

  #keep(connection: UpstreamConnection): void {
    const { upstreamKey, socket } = connection;
    if (socket.destroyed) return;
    let idle = this.#idle.get(upstreamKey);
    if (this.#closed || (idle?.length ?? 0) >= MAX_IDLE) return connection.destroy();
    if (idle === undefined) {
      idle = [];
      this.#idle.set(upstreamKey, idle);
    }
    connection.idleSince = performance.now();
    idle.push(connection);
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS);
  }

  #remove(broken: UpstreamConnection): void {
    const idle = this.#idle.get(broken.upstreamKey);
    const at = idle?.indexOf(broken) ?? -1;
    if (at !== -1) idle?.splice(at, 1);
  }

  #sweep(): void {
    const now = performance.now();
    for (const [upstreamKey, idle] of this.#idle) {
      const kept = idle.filter((connection) => {
        const fresh = Math.abs(now - connection.idleSince) < IDLE_MS;
        if (!fresh) connection.destroy();
        return fresh;
      });
      if (kept.length === 0) this.#idle.delete(upstreamKey);
      else this.#idle.set(upstreamKey, kept);
    }
    if (this.#idle.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}
