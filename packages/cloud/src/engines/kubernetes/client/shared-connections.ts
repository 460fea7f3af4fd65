import type {
  ClientHttp2Session,
  ClientHttp2Stream,
  ClientSessionRequestOptions,
  IncomingHttpHeaders,
  IncomingHttpStatusHeader,
  OutgoingHttpHeaders,
} from 'node:http2';
import { isIP } from 'node:net';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { unpooledCopy } from '../../../support/unpooled-copy.ts';

/** Of one connection; an API server may allow fewer, and allows 100 or more as it comes. */
const MAX_STREAMS = 100;
const CONNECT_TIMEOUT_MS = 15_000;
const PING_INTERVAL_MS = 30_000;
const IDLE_TIMEOUT_MS = 30_000;

export interface StreamAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  body: AsyncIterable<Buffer>;
}

/** Streams to one server that share connections by HTTP/2: thousands of followed logs need tens of them. */
export class SharedConnections {
  readonly #server: URL;
  readonly #tls: ConnectionOptions;
  readonly #connections = new Set<SharedConnection>();

  constructor(server: URL, tls: ConnectionOptions) {
    this.#server = server;
    this.#tls = tls;
  }

  get size(): number {
    return this.#connections.size;
  }

  /** Undefined if the server, or what is in front of it, does not speak HTTP/2. */
  async request(headers: OutgoingHttpHeaders, signal: AbortSignal): Promise<ClientHttp2Stream | undefined> {
    const options = { endStream: true, signal };
    for (;;) {
      signal.throwIfAborted();
      const stream = await this.#connectionWithRoom().request(headers, options);
      if (stream !== 'full') return stream;
    }
  }

  /** No new streams; those that there are continue until they end. */
  retire(): void {
    for (const connection of this.#connections) connection.retire();
  }

  destroy(): void {
    for (const connection of this.#connections) connection.destroy();
  }

  #connectionWithRoom(): SharedConnection {
    for (const connection of this.#connections) if (connection.hasRoom) return connection;
    const connection = new SharedConnection(this.#server, this.#tls, () =>
      this.#connections.delete(connection),
    );
    this.#connections.add(connection);
    return connection;
  }
}

class SharedConnection {
  readonly #opening: Promise<ClientHttp2Session | undefined>;
  readonly #onClosed: () => void;
  #session: ClientHttp2Session | undefined;
  #maxStreams = MAX_STREAMS;
  /** Open ones and those that wait for the connection. */
  #streams = 0;
  #isClosed = false;
  #pingTimer: NodeJS.Timeout | undefined;
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(server: URL, tls: ConnectionOptions, onClosed: () => void) {
    this.#onClosed = onClosed;
    this.#opening = this.#open(server, tls);
    this.#opening.then(
      (session) => session ?? this.#close(),
      () => this.#close(),
    );
  }

  get hasRoom(): boolean {
    return !this.#isClosed && this.#session?.closed !== true && this.#streams < this.#maxStreams;
  }

  async request(
    headers: OutgoingHttpHeaders,
    options: ClientSessionRequestOptions,
  ): Promise<ClientHttp2Stream | 'full' | undefined> {
    this.#streams += 1;
    clearTimeout(this.#idleTimer);
    let stream: ClientHttp2Stream | undefined;
    try {
      const session = await this.#opening;
      if (session === undefined) return undefined;
      // More may have come while it was opened than the server allows; the server may have said goodbye.
      if (session.closed || session.destroyed || this.#streams > this.#maxStreams) return 'full';
      options.signal?.throwIfAborted();
      stream = session.request(headers, options);
      stream.once('close', () => this.#release());
      return stream;
    } finally {
      if (stream === undefined) this.#release();
    }
  }

  /** It closes with the last of its streams. */
  retire(): void {
    this.#close();
    this.#session?.close();
  }

  destroy(): void {
    this.#close();
    this.#session?.destroy();
  }

  #release(): void {
    this.#streams -= 1;
    if (this.#streams > 0) return;
    this.#idleTimer = setTimeout(() => this.retire(), IDLE_TIMEOUT_MS).unref();
  }

  #close(): void {
    this.#isClosed = true;
    clearTimeout(this.#idleTimer);
    this.#onClosed();
  }

  async #open(server: URL, tls: ConnectionOptions): Promise<ClientHttp2Session | undefined> {
    const { connect } = await import('node:http2');
    const socket = await openSocket(server, tls);
    if (this.#isClosed || socket.alpnProtocol !== 'h2') socket.destroy();
    if (this.#isClosed) throw new Error('the connection was closed');
    if (socket.destroyed) return undefined;
    const session = connect(server, { createConnection: () => socket });
    // Waiters for its streams get the error from the streams.
    session.on('error', () => undefined);
    session.once('close', () => {
      clearInterval(this.#pingTimer);
      this.#close();
    });
    await new Promise((resolve, reject) => {
      session.once('remoteSettings', resolve);
      session.once('close', () => reject(new Error('the connection ended before it was open')));
    });
    const { maxConcurrentStreams = MAX_STREAMS } = session.remoteSettings;
    this.#maxStreams = Math.max(1, Math.min(MAX_STREAMS, maxConcurrentStreams));
    this.#session = session;
    this.#pingTimer = setInterval(() => ping(session), PING_INTERVAL_MS).unref();
    return session;
  }
}

/** The beginning of its answer. The body throws if it breaks off, which the stream itself takes for its end. */
export async function answerOf(stream: ClientHttp2Stream, timeoutMs: number): Promise<StreamAnswer> {
  // Also when nobody reads the body yet.
  stream.on('error', () => undefined);
  const headers = await new Promise<IncomingHttpHeaders & IncomingHttpStatusHeader>((resolve, reject) => {
    const timer = setTimeout(
      () => stream.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)),
      timeoutMs,
    );
    const onClose = (): void => {
      clearTimeout(timer);
      reject(new Error('the connection ended before the answer'));
    };
    stream.once('response', (received) => {
      clearTimeout(timer);
      stream.off('error', reject).off('close', onClose);
      resolve(received);
    });
    stream.once('error', reject).once('close', onClose);
  });
  return { status: headers[':status'] ?? 500, headers, body: wholeBody(stream) };
}

/**
 * Copies: a chunk keeps all that its connection read at once in memory, and Node's own iterator keeps the last
 * one for as long as no other comes.
 */
async function* wholeBody(stream: ClientHttp2Stream): AsyncGenerator<Buffer, void, undefined> {
  let wake = (): void => undefined;
  for (const event of ['readable', 'end', 'close']) stream.on(event, () => wake());
  try {
    for (;;) {
      const chunk = copyOf(stream.read() as Buffer | null);
      if (chunk !== undefined) yield chunk;
      else if (stream.errored !== null) throw stream.errored;
      else if (stream.readableEnded || stream.destroyed) break;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
    if (!stream.readableEnded || stream.rstCode !== 0) throw new Error('the answer broke off');
  } finally {
    stream.destroy();
  }
}

function copyOf(chunk: Buffer | null): Buffer | undefined {
  return chunk === null ? undefined : unpooledCopy(chunk);
}

/** A connection that was cut off without a word would keep its streams silent for ever. */
function ping(session: ClientHttp2Session): void {
  const timer = setTimeout(
    () => session.destroy(new Error('the connection does not answer')),
    PING_INTERVAL_MS / 2,
  ).unref();
  const isSent = !session.destroyed && session.ping(() => clearTimeout(timer));
  if (!isSent) clearTimeout(timer);
}

async function openSocket(server: URL, tls: ConnectionOptions): Promise<TLSSocket> {
  const host = server.hostname.replaceAll(/[[\]]/g, '');
  const socket = connectTls({
    ...(isIP(host) === 0 && { servername: host }),
    ...tls,
    host,
    port: Number(server.port || 443),
    ALPNProtocols: ['h2', 'http/1.1'],
  });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => socket.destroy(new Error(`no connection within ${CONNECT_TIMEOUT_MS / 1000} s`)),
      CONNECT_TIMEOUT_MS,
    );
    socket.once('close', () => clearTimeout(timer));
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      clearTimeout(timer);
      socket.off('error', reject);
      resolve(socket);
    });
  });
}
