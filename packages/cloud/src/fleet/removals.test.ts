import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceEngine } from '../engines/engine.ts';
import type { JobQueue } from '../jobs/queue.ts';
import type { FleetStore, Worker } from '../store/fleet.ts';
import { ManualClock } from '../support/clock.ts';
import { createLog } from '../support/log.ts';
import { Rounds } from '../support/rounds.ts';
import { Departures } from './departures.ts';
import { Removals } from './removals.ts';
import { Roster } from './roster.ts';
import { sampleWorker } from './worker.sample.ts';

test('an endpoint is removed when the instance of its last worker is, also of one that has just ended by itself, and the logs of all go with it', async () => {
  const steps: string[] = [];
  const removed = Promise.withResolvers<void>();
  const log = createLog({ level: 'silent', format: 'json' });
  const ended = [sampleWorker('earlier', { endedAt: 2 })];
  const store = {
    saveWorker: async (worker: Worker) => void ended.push(worker),
    endedWorkers: async () => ended,
    removeEndpoint: async () => void steps.push('endpoint removed'),
  } as unknown as FleetStore;
  const engine = {
    remove: () => removed.promise.then(() => void steps.push('instance removed')),
    forgetLog: async (id: string) => void steps.push(`log of ${id} forgotten`),
  } as unknown as InstanceEngine;
  const queue = {
    presence: { forget: () => undefined },
    caretaker: { workerGone: async () => undefined },
  } as unknown as JobQueue;
  const rounds = new Rounds({
    look: async () => undefined,
    may: () => true,
    onError: (error) => assert.fail(String(error)),
  });
  const roster = new Roster(store, log);
  const parts = {
    roster,
    rounds,
    queue,
    engines: new Map([['LOCAL-1', engine]]),
    store,
    clock: new ManualClock(),
    log,
  };
  const departures = new Departures({ ...parts, inFlight: () => 0 });
  const ending = departures.ended(roster.fleetOf('e').add(sampleWorker('w', { state: 'leaving' })), {
    exitCode: 0,
    reason: 'it ended',
  });
  assert.deepEqual(roster.members('e'), []);
  const removing = new Removals({ ...parts, departures }).remove('e');
  await new Promise((resolve) => setImmediate(resolve));
  removed.resolve();
  await Promise.all([ending, removing]);
  assert.deepEqual(steps, [
    'instance removed',
    'log of earlier forgotten',
    'log of w forgotten',
    'endpoint removed',
  ]);
});
