import assert from 'node:assert/strict';
import { beforeEach, describe, mock, test } from 'node:test';
import type { FleetStore } from '../store/fleet.ts';
import { createLog } from '../support/log.ts';
import { Rounds } from '../support/rounds.ts';
import { EarlyLooks } from './early-looks.ts';
import { Roster } from './roster.ts';
import { sampleWorker } from './worker.sample.ts';

const LONGEST_PAUSE_MS = 500;

describe('looks at an endpoint whose jobs wait', () => {
  let looks: number;
  let roster: Roster;
  let early: EarlyLooks;

  beforeEach(() => {
    mock.timers.reset();
    mock.timers.enable({ apis: ['setTimeout'] });
    looks = 0;
    roster = new Roster({} as FleetStore, createLog({ level: 'silent', format: 'json' }));
    const rounds = new Rounds({
      look: async () => void (looks += 1),
      may: () => true,
      onError: (error) => assert.fail(String(error)),
    });
    early = new EarlyLooks(roster, rounds, LONGEST_PAUSE_MS);
  });

  /** The round that is under way ends, as it does between two timers. */
  async function pass(milliseconds: number): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    mock.timers.tick(milliseconds);
    await new Promise((resolve) => setImmediate(resolve));
  }

  test('come at once for the first job, and once for all that come right after it', async () => {
    for (let job = 0; job < 100; job += 1) early.jobWaits('e');
    assert.equal(looks, 1);
    await pass(10);
    assert.equal(looks, 2);
    await pass(1_000);
    assert.equal(looks, 2);
  });

  test('become rarer while jobs keep coming and no worker does', async () => {
    const at: number[] = [];
    for (let now = 0; now < 2_000; now += 5) {
      early.jobWaits('e');
      if (now === 0) at.push(now);
      const before = looks;
      await pass(5);
      if (looks > before) at.push(now + 5);
    }
    assert.deepEqual(at, [0, 10, 30, 70, 150, 310, 630, 1_130, 1_630]);
  });

  test('do not come where a worker is there, or on its way', async () => {
    const { members } = roster.fleetOf('e');
    roster.fleetOf('e').add(sampleWorker('w', { endpointId: 'e' }));
    early.jobWaits('e');
    assert.equal(looks, 0);
    members.clear();
    early.jobWaits('e');
    assert.equal(looks, 1);
    early.jobWaits('e');
    roster.fleetOf('e').add(sampleWorker('v', { endpointId: 'e' }));
    await pass(10);
    assert.equal(looks, 1);
  });
});
