import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FleetStore, Worker } from '../store/fleet.ts';
import { createLog } from '../support/log.ts';
import { Roster } from './roster.ts';
import { sampleWorker } from './worker.sample.ts';

const log = createLog({ level: 'silent', format: 'json' });

test('a worker that took up the id of another is another one', () => {
  const roster = new Roster({} as FleetStore, log);
  const earlier = roster.fleetOf('e').add(sampleWorker('w'));
  assert.equal(roster.holds(earlier), true);
  roster.clear();
  assert.equal(roster.holds(earlier), false);
  const later = roster.fleetOf('e').add(sampleWorker('w'));
  assert.equal(roster.holds(earlier), false);
  roster.drop(earlier);
  assert.equal(roster.member('e', 'w'), later);
  roster.drop(later);
  assert.equal(roster.member('e', 'w'), undefined);
});

test('whoever waits for a worker is woken when it is ready, also where that cannot be written down', async () => {
  const saved: Worker[] = [];
  const store = {
    saveWorker: async (worker: Worker) => {
      saved.push(worker);
      throw new Error('the disk is full');
    },
  } as unknown as FleetStore;
  const roster = new Roster(store, log);
  const member = roster.fleetOf('e').add(sampleWorker('w'));
  const { changed } = roster.changes.next('e', 60_000);
  roster.becomesReady(member, 7);
  await changed;
  assert.deepEqual([member.record.state, member.record.readyAt, saved.length], ['ready', 7, 1]);
  assert.equal(roster.memberOfInstance('w'), member);
});
