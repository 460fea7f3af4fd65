import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import type { SeededRandom } from './safety/seeded-random.ts';

/**
 * An address behind which servers stand, and between which and them wires are cut at any byte, in either
 * direction.
 */
export interface FaultyTcpProxy {
  url: string;
  /** From now on wires are cut; at first none is. */
  startFaults(): void;
  /** No more from now on. */
  stopFaults(): void;
  /** How many were cut so far. */
  faultCount(): number;
  close(): Promise<void>;
}

/** A wire lasts for so many milliseconds, or is cut before by the number of its bytes. */
const CONNECTION_LIFETIME_MS = { least: 50, most: 800 };
/**
 * As a power of ten: small numbers are as likely as large ones. Less comes back than goes, and
 * acknowledgements shall be cut too.
 */
const BYTE_LIMIT_EXPONENTS = { there: [3, 7], back: [1, 4] } as const;

/** Each connection goes to whichever server `target` names then. */
export async function startFaultyTcpProxy(
  target: () => string,
  chance: SeededRandom,
): Promise<FaultyTcpProxy> {
  const wires = new Set<() => void>();
  let cutting = false;
  let count = 0;

  const server = createServer((near) => {
    const { hostname, port } = new URL(target());
    const far = connect({ host: hostname, port: Number(port) });
    const end = (): void => {
      wires.delete(end);
      near.destroy();
      far.destroy();
    };
    wires.add(end);
    for (const socket of [near, far]) socket.on('error', end).on('close', end);
    const byBytes = chance.chance(0.2);
    const some = ([least, most]: readonly [number, number]): number =>
      10 ** (least + chance.next() * (most - least));
    const left = new Map<Socket, number>([
      [near, some(BYTE_LIMIT_EXPONENTS.there)],
      [far, some(BYTE_LIMIT_EXPONENTS.back)],
    ]);
    const until = Date.now() + chance.between(CONNECTION_LIFETIME_MS.least, CONNECTION_LIFETIME_MS.most);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('data', (bytes: Buffer) => {
        const rest = (left.get(from) ?? 0) - bytes.length;
        left.set(from, rest);
        if (!cutting || (byBytes ? rest >= 0 : Date.now() < until)) {
          if (!to.write(bytes)) {
            from.pause();
            to.once('drain', () => from.resume());
          }
          return;
        }
        count += 1;
        wires.delete(end);
        // Some of the last piece still arrives.
        to.end(bytes.subarray(0, chance.between(0, bytes.length)), end);
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    startFaults: () => (cutting = true),
    stopFaults: () => (cutting = false),
    faultCount: () => count,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const end of wires) end();
      }),
  };
}
