import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { ROOT_ACCOUNT_ID } from '../domain/caller.ts';
import { createLog } from '../support/log.ts';
import {
  claimConnection,
  ConnectionLimit,
  ConnectionLimitedServer,
  defaultMaxConnections,
} from './connection-limit.ts';
import { FastPathServer } from './fast-path/fast-path-server.ts';
import { toBerthError } from './http.errors.ts';

const HANDLER = { accepts: () => false, serveFastPath: () => undefined, closing: false };

for (const [name, create] of [
  ['the fast path', (limit: ConnectionLimit) => new FastPathServer({}, HANDLER, limit)],
  ['Node alone', (limit: ConnectionLimit) => new ConnectionLimitedServer({}, limit)],
] as const) {
  describe(`a server with a limit on its connections, with ${name}`, () => {
    test('refuses those beyond it with the reason, logs it, and accepts others when some have ended', async (t) => {
      const warnings: unknown[][] = [];
      const limit = new ConnectionLimit({ max: 2 }, {
        warn: (...said: unknown[]) => warnings.push(said),
      } as never);
      const server = create(limit).on('request', (_request, response) => response.end('served'));
      await once(server.listen(0, '127.0.0.1'), 'listening');
      t.after(() => {
        server.closeAllConnections();
        server.close();
      });
      const { port } = server.address() as AddressInfo;
      const open = async (): Promise<Socket> => {
        const socket = connect(port, '127.0.0.1');
        await once(socket, 'connect');
        return socket;
      };
      const ask = async (socket: Socket): Promise<string> => {
        socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
        return text(socket);
      };
      const [first] = [await open(), await open()];
      while (limit.open < 2) await new Promise((resolve) => setImmediate(resolve));
      for (let tries = 0; tries < 3; tries += 1)
        assert.match(await ask(await open()), /^HTTP\/1\.1 503 [\s\S]*has reached its limit of connections/);
      assert.equal(warnings.length, 1);
      assert.match(String(warnings[0]?.[1]), /maxConnections/);
      first.destroy();
      while (limit.open > 1) await new Promise((resolve) => setImmediate(resolve));
      assert.match(await ask(await open()), /served$/);
    });
  });
}

describe('who may have how many connections', () => {
  const silent = createLog({ level: 'silent', format: 'json' });
  /** A connection whose other end is not there. */
  const socketFrom = (address: string, port: number): Socket & { answer: string } => {
    const socket = Object.assign(new Socket(), { answer: '' });
    Object.defineProperties(socket, {
      remoteAddress: { value: address },
      remotePort: { value: port },
      localPort: { value: 1 },
    });
    socket.end = ((text: string) => {
      socket.answer = text;
      return socket;
    }) as never;
    return socket;
  };

  test('one account gets a part, others and the root account the rest; what ends is free again', async () => {
    const limit = new ConnectionLimit({ max: 40, maxPerAccount: 3 }, silent);
    const admit = (port: number): Socket => {
      const socket = socketFrom('10.0.0.1', port);
      assert.equal(limit.admit(socket), true);
      return socket;
    };
    const [first, second, third, fourth, fifth, sixth] = [
      admit(1),
      admit(2),
      admit(3),
      admit(4),
      admit(5),
      admit(6),
    ];
    const sockets = [first, second, third, fourth, fifth, sixth];
    for (const socket of [first, second, third, third]) claimConnection(socket, 'ann');
    assert.equal(limit.openOf('ann'), 3);
    assert.throws(() => claimConnection(fourth, 'ann'), {
      code: 'rate',
      message: /3 of 3 are open.*maxConnectionsPerAccount/,
    });
    claimConnection(fourth, 'bob');
    for (const socket of [fifth, sixth]) claimConnection(socket, ROOT_ACCOUNT_ID);
    claimConnection(first, 'bob');
    assert.deepEqual([limit.openOf('ann'), limit.openOf('bob')], [2, 2]);
    // Over TLS, requests name another socket of the same connection.
    claimConnection(socketFrom('10.0.0.1', 4), 'ann');
    assert.deepEqual([limit.openOf('ann'), limit.openOf('bob')], [3, 1]);
    for (const socket of sockets) await once(socket.destroy(), 'close');
    assert.deepEqual([limit.open, limit.openOf('ann'), limit.openOf('bob')], [0, 0, 0]);
  });

  test('connections without a key are limited by address, and the oldest makes room when all are taken', async () => {
    let now = 0;
    const limit = new ConnectionLimit({ max: 20, now: () => now }, silent);
    const sockets = Array.from({ length: 16 }, (_, index) => socketFrom('10.0.0.1', index + 1));
    for (const socket of sockets) assert.equal(limit.admit(socket), true);
    const refused = socketFrom('10.0.0.1', 17);
    assert.equal(limit.admit(refused), false);
    assert.match(refused.answer, /^HTTP\/1\.1 429 [\s\S]*have not sent an API key/);
    claimConnection(sockets[0] as Socket, 'ann');
    for (let index = 0; index < 4; index += 1)
      assert.equal(limit.admit(socketFrom('10.0.0.2', index + 1)), true);
    const late = socketFrom('10.0.0.3', 1);
    assert.equal(limit.admit(late), false);
    assert.match(late.answer, /^HTTP\/1\.1 503 /);
    now += 60_000;
    assert.equal(limit.admit(socketFrom('10.0.0.3', 2)), true);
    assert.deepEqual(
      [sockets[0]?.destroyed, sockets[1]?.destroyed, sockets[2]?.destroyed],
      [false, true, false],
    );
  });
});

test('clients get a part of the descriptors that the system allows', () => {
  assert.equal(
    defaultMaxConnections('Max open files            1000                 4096                 files'),
    600,
  );
  assert.equal(defaultMaxConnections(''), 614);
  assert.ok(defaultMaxConnections() > 0);
});

test('a lack of file descriptors is reported as such', () => {
  const log = createLog({ level: 'silent', format: 'json' });
  for (const code of ['EMFILE', 'ENFILE']) {
    const error = toBerthError(Object.assign(new Error(`${code}: too many open files`), { code }), log, 'r');
    assert.equal(error.code, 'unavailable');
    assert.match(error.message, /no free file descriptors/);
  }
});
