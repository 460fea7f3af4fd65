import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { createLog } from '../support/log.ts';
import { WorkerListener } from './worker-listener.ts';

const log = createLog({ level: 'fatal', format: 'json' });
const answering = () => createServer((_request, response) => response.end('in'));

test('a door lets in who comes from its network, and whoever is at its own address', async () => {
  const open = await WorkerListener.open(
    answering(),
    { address: '127.0.0.1', subnets: ['127.0.0.0/8'] },
    0,
    log,
  );
  assert.equal(await (await fetch(`http://127.0.0.1:${open.port}/`)).text(), 'in');
  // On the loopback one comes from the address that one goes to.
  const closed = await WorkerListener.open(
    answering(),
    { address: '127.0.0.2', subnets: ['10.9.0.0/16'] },
    0,
    log,
  );
  await assert.rejects(
    fetch(`http://127.0.0.2:${closed.port}/`, { signal: AbortSignal.timeout(5_000) }).then(({ status }) =>
      assert.fail(String(status)),
    ),
    (error) => error instanceof TypeError,
  );
  for (const door of [open, closed]) {
    door.closeAllConnections();
    await door.close();
  }
});

test('where the port is taken, the door is at another one', async () => {
  const first = await WorkerListener.open(
    answering(),
    { address: '127.0.0.1', subnets: ['127.0.0.0/8'] },
    0,
    log,
  );
  const second = await WorkerListener.open(
    answering(),
    { address: '127.0.0.1', subnets: ['127.0.0.0/8'] },
    first.port,
    log,
  );
  assert.notEqual(second.port, first.port);
  assert.equal(await (await fetch(`http://127.0.0.1:${second.port}/`)).text(), 'in');
  for (const door of [first, second]) {
    door.closeAllConnections();
    await door.close();
  }
});
