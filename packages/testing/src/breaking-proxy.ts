import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

type Direction = 'to the server' | 'to the worker';

/** Where the next connection breaks. */
export interface Break {
  direction: Direction;
  /** In the piece of bytes that is on its way. */
  at: RegExp;
  /** That piece still arrives; what comes back does not. */
  forward: boolean;
}

/** Stands between workers and a server, and breaks connections at a chosen message. */
export class BreakingProxy {
  readonly #target: URL;
  readonly #server = createServer((worker) => this.#serve(worker));
  readonly #connections = new Set<() => void>();
  #break: (Break & { broken: () => void }) | undefined;
  /** Requests for the channel get 404, as from a server of a version without it. */
  hideChannel = false;

  constructor(target: string) {
    this.#target = new URL(target);
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Breaks every connection, whatever is under way. */
  cut(): void {
    for (const end of this.#connections) end();
  }

  /** Resolves when a connection broke there. */
  breakAt(where: Break): Promise<void> {
    return new Promise((broken) => (this.#break = { ...where, broken }));
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.cut();
    });
  }

  #serve(worker: Socket): void {
    const server = connect(Number(this.#target.port), this.#target.hostname);
    let ended = false;
    /** Set when the answer to what was forwarded is not to arrive. */
    let onAnswer: (() => void) | undefined;
    const end = (): void => {
      ended = true;
      this.#connections.delete(end);
      worker.destroy();
      server.destroy();
    };
    this.#connections.add(end);
    const pass = (direction: Direction, from: Socket, to: Socket) => (bytes: Buffer) => {
      if (ended) return;
      if (onAnswer !== undefined && direction === 'to the worker') {
        onAnswer();
        return end();
      }
      const text = bytes.toString('latin1');
      if (this.hideChannel && direction === 'to the server' && text.includes('/job-channel/')) {
        worker.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
        return;
      }
      const where = this.#break;
      if (where?.direction === direction && where.at.test(text)) {
        this.#break = undefined;
        if (!where.forward) {
          where.broken();
          return end();
        }
        onAnswer = where.broken;
      }
      if (!to.write(bytes)) {
        from.pause();
        to.once('drain', () => from.resume());
      }
    };
    worker.on('data', pass('to the server', worker, server));
    server.on('data', pass('to the worker', server, worker));
    for (const socket of [worker, server]) socket.on('error', end).on('close', end);
  }
}
