import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import type { JobSample } from '../../domain/account-event.ts';
import type { JobStatus } from '../../domain/job-records.ts';
import { JobChangeCollector } from './job-change-collector.ts';

interface Emitted {
  endpointId: string;
  changes: number;
  jobs: JobSample[];
}

let emitted: Emitted[];
let collector: JobChangeCollector;
beforeEach(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] });
  emitted = [];
  collector = new JobChangeCollector((endpointId, changes, jobs) =>
    emitted.push({ endpointId, changes, jobs }),
  );
});
afterEach(() => {
  collector.close();
  mock.timers.reset();
});

const add = (endpointId: string, id: string, status: JobStatus = 'IN_QUEUE'): void =>
  collector.add({ endpointId, id, status, workerId: null });

test('the first change goes out at once, those that follow together', () => {
  add('e', 'a');
  mock.timers.tick(1);
  assert.deepEqual(emitted, [
    { endpointId: 'e', changes: 1, jobs: [{ id: 'a', status: 'IN_QUEUE', workerId: null }] },
  ]);
  add('e', 'a', 'IN_PROGRESS');
  add('e', 'b');
  add('e', 'a', 'COMPLETED');
  mock.timers.tick(100);
  assert.equal(emitted.length, 1);
  mock.timers.tick(200);
  assert.equal(emitted.length, 2);
  assert.equal(emitted[1]?.changes, 3);
  assert.deepEqual(
    emitted[1]?.jobs.map(({ id, status }) => [id, status]),
    [
      ['b', 'IN_QUEUE'],
      ['a', 'COMPLETED'],
    ],
  );
  mock.timers.tick(1_000);
  add('e', 'c');
  mock.timers.tick(1);
  assert.equal(emitted.length, 3, 'a quiet endpoint is told at once again');
});

test('an event has the last ten jobs and counts them all', () => {
  add('e', 'first');
  mock.timers.tick(1);
  for (let number = 0; number < 25; number += 1) add('e', `job${number}`);
  mock.timers.tick(300);
  assert.equal(emitted[1]?.changes, 25);
  assert.deepEqual(
    emitted[1]?.jobs.map(({ id }) => id),
    Array.from({ length: 10 }, (_, index) => `job${index + 15}`),
  );
});

test('2,000 busy endpoints have no more than about 200 events in a second', () => {
  for (let round = 0; round < 100; round += 1) {
    for (let number = 0; number < 2_000; number += 1) add(`e${number}`, `${number}`);
    mock.timers.tick(100);
  }
  assert.ok(emitted.length <= 10 * 250, `${emitted.length} events in 10 s`);
  assert.ok(new Set(emitted.map(({ endpointId }) => endpointId)).size >= 1_900);
});
