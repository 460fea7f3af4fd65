import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EndpointHealth } from '../api/types.ts';
import { concernsOf } from './overview-concerns.ts';

function health(jobs: Partial<EndpointHealth['jobs']>, workers: Partial<EndpointHealth['workers']> = {}) {
  return new Map<string, EndpointHealth>([
    [
      'e1',
      {
        jobs: { completed: 0, failed: 0, inProgress: 0, inQueue: 0, retried: 0, ...jobs },
        workers: { idle: 0, initializing: 0, ready: 0, running: 0, throttled: 0, unhealthy: 0, ...workers },
      },
    ],
  ]);
}
const ENDPOINTS = [{ id: 'e1', name: 'one', workers: { min: 0, max: 3 } }];
const kinds = (...given: Parameters<typeof concernsOf>) => concernsOf(...given).map(({ status }) => status);

test('nothing needs anybody while jobs have workers', () => {
  assert.deepEqual(kinds(ENDPOINTS, health({ inQueue: 5 }, { ready: 1 }), [], []), []);
});

test('jobs without workers, failures, workers in trouble, broken pods and full limits do', () => {
  assert.deepEqual(kinds(ENDPOINTS, health({ inQueue: 5 }), [], []), ['IN_QUEUE']);
  assert.deepEqual(kinds(ENDPOINTS, health({ failed: 2 }), [], []), ['FAILED']);
  assert.deepEqual(kinds(ENDPOINTS, health({}, { unhealthy: 1, throttled: 1 }), [], []), [
    'UNHEALTHY',
    'THROTTLED',
  ]);
  assert.deepEqual(
    kinds(
      [],
      new Map(),
      [
        { id: 'p', name: 'p', status: 'ERROR' },
        { id: 'q', name: 'q', status: 'RUNNING' },
      ],
      [],
    ),
    ['ERROR'],
  );
  assert.deepEqual(
    kinds(
      [],
      new Map(),
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
