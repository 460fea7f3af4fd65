import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { isListening } from './port-probe.ts';

const PROBES = 300;

for (const [how, address] of [
  ['of its own address', '127.0.0.1'],
  ['through the published port', ''],
] as const) {
  test(`a probe ${how} causes no error in a server that writes first`, async () => {
    const errors: Error[] = [];
    const server = createServer((socket) => socket.on('error', (error) => errors.push(error)).end('hello'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    for (let probes = 0; probes < PROBES; probes += 1)
      assert.equal(await isListening({ address, gateway: '127.0.0.1', port, hostPort: port }), true);
    server.close();
    await once(server, 'close');
    assert.deepEqual(errors, []);
    assert.equal(await isListening({ address, gateway: '127.0.0.1', port, hostPort: port }), false);
  });
}
