import { connect } from 'node:net';
import type { Socket } from 'node:net';

export interface HttpResponse {
  status: number;
  body: string;
}

interface PendingRequest {
  resolve(answer: HttpResponse): void;
  reject(error: Error): void;
}

/**
 * One kept-alive HTTP connection with one request at a time, read with the least work: on a
 * machine with few cores a load generator that is slow measures itself.
 */
export class HttpConnection {
  readonly opened: Promise<void>;
  readonly #socket: Socket;
  readonly #host: string;
  readonly #authorization: string;
  #asked: PendingRequest | undefined;
  #broken: Error | undefined;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(url: string, key: string) {
    const { hostname, port, host } = new URL(url);
    this.#host = host;
    this.#authorization = key;
    this.#socket = connect(Number(port), hostname);
    this.#socket.setNoDelay(true);
    this.opened = new Promise((resolve, reject) =>
      this.#socket.once('connect', resolve).once('error', reject),
    );
    this.opened.catch(() => undefined);
    this.#socket.on('data', (bytes) => this.#read(bytes));
    this.#socket.on('error', (error) => this.#fail(error));
    this.#socket.on('close', () => this.#fail(new Error('the connection was closed')));
  }

  request(method: string, path: string, body = ''): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      if (this.#broken !== undefined) throw this.#broken;
      if (this.#asked !== undefined) throw new Error('one request at a time');
      this.#asked = { resolve, reject };
      const content =
        method === 'GET'
          ? ''
          : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
      this.#socket.write(
        `${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\nauthorization: ${this.#authorization}\r\n` +
          `${content}\r\n${body}`,
      );
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(bytes: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? bytes : Buffer.concat([this.#bytes, bytes]);
    const end = this.#bytes.indexOf('\r\n\r\n');
    if (end === -1) return;
    const head = this.#bytes.toString('latin1', 0, end);
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
    const from = end + 4;
    if (this.#bytes.length < from + length) return;
    const asked = this.#asked;
    this.#asked = undefined;
    const answer = {
      status: Number(head.slice(9, 12)),
      body: this.#bytes.toString('utf8', from, from + length),
    };
    this.#bytes = this.#bytes.subarray(from + length);
    asked?.resolve(answer);
  }

  #fail(error: Error): void {
    this.#broken ??= error;
    this.#asked?.reject(error);
    this.#asked = undefined;
  }
}

/** Several connections; a request waits for one that is free. */
export class HttpPool {
  readonly #all: HttpConnection[];
  readonly #free: HttpConnection[];
  readonly #waiting: ((connection: HttpConnection) => void)[] = [];

  constructor(url: string, key: string, size: number) {
    this.#all = Array.from({ length: size }, () => new HttpConnection(url, key));
    this.#free = [...this.#all];
  }

  /** Resolves when every connection stands. */
  async opened(): Promise<void> {
    await Promise.all(this.#all.map(({ opened }) => opened));
  }

  async request(method: string, path: string, body?: string): Promise<HttpResponse> {
    const connection =
      this.#free.pop() ?? (await new Promise<HttpConnection>((resolve) => this.#waiting.push(resolve)));
    try {
      return await connection.request(method, path, body);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free.push(connection);
      else next(connection);
    }
  }

  close(): void {
    for (const connection of this.#all) connection.close();
  }
}
