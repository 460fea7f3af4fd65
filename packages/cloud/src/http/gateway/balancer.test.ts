import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from '../../support/log.ts';
import { Balancer } from './balancer.ts';
import type { Place } from './balancer.ts';
import { GATEWAY_LIMITS } from './limits.ts';
import { TestPool } from './test-stage.ts';

const log = createLog({ level: 'silent', format: 'json' });
const endpoint = { id: 'ep1', scalerType: 'REQUEST_COUNT', scalerValue: 1 } as const;
const never = new AbortController().signal;

test('who comes back from a worker that could not be reached keeps its turn, however full the room is', async () => {
  const pool = new TestPool();
  const balancer = new Balancer({
    pool,
    endpoints: { find: async () => endpoint },
    limits: { ...GATEWAY_LIMITS, waiting: 2 },
    log,
  });
  pool.add({ id: 'dead', host: '127.0.0.1', port: 1 });
  const first = balancer.arrive(endpoint, undefined);
  const place = balancer.find(first) as Place;
  const order: string[] = [];
  const seated = (name: string, waiting: Promise<Place>): Promise<void> =>
    waiting.then(({ leave }) => {
      order.push(name);
      leave();
    });
  const others = ['second', 'third'].map((name) =>
    seated(name, balancer.wait(balancer.arrive(endpoint, undefined), never)),
  );
  const back = seated('first', balancer.instead(first, place, never));
  await assert.rejects(balancer.wait(balancer.arrive(endpoint, undefined), never), /no workers available/);
  pool.remove('dead');
  pool.add({ id: 'next', host: '127.0.0.1', port: 1 });
  await Promise.all([back, ...others]);
  assert.deepEqual(order, ['first', 'second', 'third']);
});
