import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { createLog } from '../support/log.ts';
import { WorkerListener } from './worker-listener.ts';

const log = createLog({ level: 'fatal', format: 'json' });
const answering = () => createServer((_request, response) => response.end('in'));

test('a worker listener accepts its subnets only', async () => {
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
  for (const listener of [open, closed]) {
    listener.closeAllConnections();
    await listener.close();
  }
});

test('a worker listener takes another port where its own is in use', async () => {
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
  for (const listener of [first, second]) {
    listener.closeAllConnections();
    await listener.close();
  }
});
