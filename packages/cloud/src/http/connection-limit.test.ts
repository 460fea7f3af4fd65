import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { createLog } from '../support/log.ts';
import { ConnectionLimit, ConnectionLimitedServer, defaultMaxConnections } from './connection-limit.ts';
import { FastPathServer } from './fast-path/fast-path-server.ts';
import { toBerthError } from './http.errors.ts';

const HANDLER = { accepts: () => false, serveFastPath: () => undefined, closing: false };

for (const [name, create] of [
  ['the fast path', (limit: ConnectionLimit) => new FastPathServer({}, HANDLER, limit)],
  ['Node alone', (limit: ConnectionLimit) => new ConnectionLimitedServer({}, limit)],
] as const) {
  describe(`a server with a limit on its connections, with ${name}`, () => {
    test('answers those beyond it with the reason, says so in its log, and accepts others when some have ended', async (t) => {
      const warnings: unknown[][] = [];
      const limit = new ConnectionLimit(2, { warn: (...said: unknown[]) => warnings.push(said) } as never);
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
        assert.match(await ask(await open()), /^HTTP\/1\.1 503 [\s\S]*no room for another connection/);
      assert.equal(warnings.length, 1);
      assert.match(String(warnings[0]?.[1]), /maxConnections/);
      first.destroy();
      while (limit.open > 1) await new Promise((resolve) => setImmediate(resolve));
      assert.match(await ask(await open()), /served$/);
    });
  });
}

test('clients get a part of the descriptors that the system allows', () => {
  assert.equal(
    defaultMaxConnections('Max open files            1000                 4096                 files'),
    600,
  );
  assert.equal(defaultMaxConnections(''), 614);
  assert.ok(defaultMaxConnections() > 0);
});

test('a lack of descriptors is said as what it is', () => {
  const log = createLog({ level: 'silent', format: 'json' });
  for (const code of ['EMFILE', 'ENFILE']) {
    const error = toBerthError(Object.assign(new Error(`${code}: too many open files`), { code }), log, 'r');
    assert.equal(error.code, 'unavailable');
    assert.match(error.message, /no free file descriptors/);
  }
});
