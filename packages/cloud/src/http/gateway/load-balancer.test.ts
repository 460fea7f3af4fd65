import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from '../../support/log.ts';
import { LoadBalancer } from './load-balancer.ts';
import type { WorkerSlot } from './load-balancer.ts';
import { GATEWAY_LIMITS } from './gateway-limits.ts';
import { FakeWorkerPool } from './gateway.fixture.ts';

const log = createLog({ level: 'silent', format: 'json' });
const endpoint = { id: 'ep1', scalerType: 'REQUEST_COUNT', scalerValue: 1 } as const;
const never = new AbortController().signal;

test('who comes back from a worker that could not be reached keeps its turn, however full the room is', async () => {
  const pool = new FakeWorkerPool();
  const balancer = new LoadBalancer({
    pool,
    endpoints: { find: async () => endpoint },
    limits: { ...GATEWAY_LIMITS, maxWaiting: 2 },
    log,
  });
  pool.add({ id: 'dead', host: '127.0.0.1', port: 1 });
  const first = balancer.register(endpoint, undefined);
  const place = balancer.tryAcquire(first) as WorkerSlot;
  const order: string[] = [];
  const seated = (name: string, waiting: Promise<WorkerSlot>): Promise<void> =>
    waiting.then(({ release }) => {
      order.push(name);
      release();
    });
  const others = ['second', 'third'].map((name) =>
    seated(name, balancer.acquire(balancer.register(endpoint, undefined), never)),
  );
  const back = seated('first', balancer.reacquire(first, place, never));
  await assert.rejects(
    balancer.acquire(balancer.register(endpoint, undefined), never),
    /no workers available/,
  );
  pool.remove('dead');
  pool.add({ id: 'next', host: '127.0.0.1', port: 1 });
  await Promise.all([back, ...others]);
  assert.deepEqual(order, ['first', 'second', 'third']);
});
