import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EndpointHealth } from '../api/types.ts';
import { concernsOf } from './overview-concerns.ts';
import type { LimitUse } from './overview-concerns.ts';

function kinds(
  jobs: Partial<EndpointHealth['jobs']>,
  workers: Partial<EndpointHealth['workers']> = {},
  failed: { id: string; name: string; statusDetail: string | null }[] = [],
  limits: LimitUse[] = [],
  failedStored = true,
): string[] {
  const active = [
    {
      id: 'e1',
      name: 'one',
      workersMax: 3,
      failedStored,
      jobs: { completed: 0, failed: 0, inProgress: 0, inQueue: 0, retried: 0, ...jobs },
      workers: { idle: 0, initializing: 0, ready: 0, running: 0, throttled: 0, unhealthy: 0, ...workers },
    },
  ];
  return concernsOf({ active, pods: { failed } }, limits).map(({ status }) => status);
}

test('nothing needs anybody while jobs have workers', () => {
  assert.deepEqual(kinds({ inQueue: 5 }, { ready: 1 }), []);
  assert.deepEqual(kinds({ inQueue: 5, inProgress: 1 }), []);
});

test('jobs without workers, failures, workers in trouble, broken pods and full limits do', () => {
  assert.deepEqual(kinds({ inQueue: 5 }), ['IN_QUEUE']);
  assert.deepEqual(kinds({ failed: 2 }), ['FAILED']);
  assert.deepEqual(kinds({ failed: 2 }, {}, [], [], false), []);
  assert.deepEqual(kinds({}, { unhealthy: 1, throttled: 1 }), ['UNHEALTHY', 'THROTTLED']);
  assert.deepEqual(kinds({}, {}, [{ id: 'p', name: 'p', statusDetail: null }]), ['ERROR']);
  assert.deepEqual(
    kinds(
      {},
      {},
      [],
      [
        { name: 'pods', used: 4, limit: 5 },
        { name: 'gpus', used: 1, limit: null },
        { name: 'workers', used: 5, limit: 5 },
        { name: 'volumeBytes', used: 1, limit: 5 },
      ],
    ),
    ['PENDING', 'ERROR'],
  );
});
