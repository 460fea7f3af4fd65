import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import { jobCountLimit, endpointLoad } from './endpoint-load.ts';

test('at most one job more than all workers could need is counted', () => {
  assert.equal(jobCountLimit({ workersMax: 10, scalerType: 'QUEUE_DELAY', scalerValue: 4 }), 11);
  assert.equal(jobCountLimit({ workersMax: 10, scalerType: 'REQUEST_COUNT', scalerValue: 4 }), 41);
  assert.equal(jobCountLimit({ workersMax: 10, scalerType: 'REQUEST_COUNT', scalerValue: 1.5 }), 21);
  // With a maximum of 0 workers, it is still known whether a job waits.
  assert.equal(jobCountLimit({ workersMax: 0, scalerType: 'QUEUE_DELAY', scalerValue: 4 }), 2);
});

test('the load of an endpoint: waiting jobs, or the requests that the gateway counts', async () => {
  const calls: unknown[] = [];
  const queue: Parameters<typeof endpointLoad>[2] = {
    countWaiting: async (...args) => {
      calls.push(args);
      return { waiting: 5, late: 2 };
    },
    counts: async () => ({ completed: 9, failed: 9, inProgress: 3, inQueue: 9, retried: 0 }),
  };
  const endpoint = { ...sampleEndpoint, workersMax: 3, scalerType: 'QUEUE_DELAY', scalerValue: 4 } as const;
  assert.deepEqual(await endpointLoad({ ...endpoint, type: 'QUEUE' }, 7, queue, 10_000), {
    waiting: 5,
    overdue: 2,
    inProgress: 3,
  });
  assert.deepEqual(calls, [['e', 6_000, 4]]);
  assert.deepEqual(await endpointLoad({ ...endpoint, type: 'LOAD_BALANCER' }, 7, queue, 10_000), {
    waiting: 7,
    overdue: 0,
    inProgress: 0,
  });
  assert.equal(calls.length, 1);
  // Without a job in the queue, none is counted.
  const empty = {
    ...queue,
    counts: async () => ({ completed: 9, failed: 9, inProgress: 3, inQueue: 0, retried: 0 }),
  };
  assert.deepEqual(await endpointLoad({ ...endpoint, type: 'QUEUE' }, 7, empty, 10_000), {
    waiting: 0,
    overdue: 0,
    inProgress: 3,
  });
  assert.equal(calls.length, 1);
});
