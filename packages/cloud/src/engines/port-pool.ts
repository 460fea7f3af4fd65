import { once } from 'node:events';
import { createServer } from 'node:net';
import { BerthError } from '../support/errors.ts';

/** Below the numbers that the kernel gives to outgoing connections, so that none of those comes in between. */
const FIRST_PORT = 20_000;
const PORT_COUNT = 10_000;

/** Numbers for instances to listen on. One that was given back is the last to be given again. */
export class PortPool {
  readonly #allocated = new Set<number>();
  #next: number;

  /** Different starts keep two servers on one machine out of each other's way. */
  constructor(start = process.pid * 64) {
    this.#next = start % PORT_COUNT;
  }

  reserve(ports: readonly number[]): void {
    for (const port of ports) this.#allocated.add(port);
  }

  release(ports: readonly number[]): void {
    for (const port of ports) this.#allocated.delete(port);
  }

  /** The wished number where it is free, or another. */
  async allocate(wished?: number): Promise<number> {
    if (wished !== undefined && !this.#allocated.has(wished)) {
      this.#allocated.add(wished);
      if (await isFree(wished)) return wished;
      this.#allocated.delete(wished);
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
