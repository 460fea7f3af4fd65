import { once } from 'node:events';
import { createServer } from 'node:net';
import { BerthError } from '../support/errors.ts';

/** Below the ephemeral port range, so that outgoing connections do not take these ports. */
const FIRST_PORT = 20_000;
const PORT_COUNT = 10_000;
/** All of them, as iptables reads a range. */
export const POOL_RANGE = `${FIRST_PORT}:${FIRST_PORT + PORT_COUNT - 1}`;

/** Host ports for instances. A released port is reused last. */
export class PortPool {
  readonly #allocated = new Set<number>();
  #next: number;

  /** Different start values keep two servers on one machine from colliding. */
  constructor(start = process.pid * 64) {
    this.#next = start % PORT_COUNT;
  }

  reserve(ports: readonly number[]): void {
    for (const port of ports) this.#allocated.add(port);
  }

  release(ports: readonly number[]): void {
    for (const port of ports) this.#allocated.delete(port);
  }

  /** The preferred port if it is free, otherwise another one. */
  async allocate(preferred?: number): Promise<number> {
    if (preferred !== undefined && !this.#allocated.has(preferred)) {
      this.#allocated.add(preferred);
      if (await isFree(preferred)) return preferred;
      this.#allocated.delete(preferred);
    }
    for (let tries = 0; tries < PORT_COUNT; tries += 1) {
      const port = FIRST_PORT + this.#next;
      this.#next = (this.#next + 1) % PORT_COUNT;
      if (this.#allocated.has(port)) continue;
      this.#allocated.add(port);
      if (await isFree(port)) return port;
      this.#allocated.delete(port);
    }
    throw new BerthError(
      'capacity',
      `none of the ${PORT_COUNT} ports from ${FIRST_PORT} on is free on this machine`,
    );
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen({ port, exclusive: true });
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
