import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import type { InstanceEngine } from '../engines/engine.ts';
import { sampleEndpoint } from '../resources/endpoints/endpoint.sample.ts';
import type { FleetStore } from '../store/fleet.ts';
import type { Endpoint } from '../store/records.ts';
import { ManualClock } from '../support/clock.ts';
import { createLog } from '../support/log.ts';
import { BalancedHealth } from './balanced-health.ts';
import type { Health } from './balanced-health.ts';
import type { Departures } from './departures.ts';
import type { Member } from './member.ts';
import { Roster } from './roster.ts';
import { sampleWorker } from './worker.sample.ts';

const endpoint: Endpoint = { ...sampleEndpoint, id: 'e', type: 'LOAD_BALANCER' };
const ADDRESS = { host: '127.0.0.1', port: 80 };
const CHECK_EVERY_MS = 5_000;

describe('a load balanced worker that an earlier server left', () => {
  let clock: ManualClock;
  let answer: Health;
  let dismissed: (string | null)[];
  let roster: Roster;
  let health: BalancedHealth;

  beforeEach(() => {
    clock = new ManualClock();
    dismissed = [];
    const log = createLog({ level: 'silent', format: 'json' });
    roster = new Roster({ saveWorker: async () => undefined } as unknown as FleetStore, log);
    const engine = { address: async () => ADDRESS } as unknown as InstanceEngine;
    const departures = {
      dismiss: async (one: Member, reason: string | null) => {
        one.record = { ...one.record, state: 'leaving' };
        dismissed.push(reason);
      },
    } as unknown as Departures;
    health = new BalancedHealth({
      roster,
      departures,
      engines: new Map([['LOCAL-1', engine]]),
      probe: async () => answer,
      inFlight: () => 0,
      clock,
      log,
    });
  });

  const adopted = (state: 'starting' | 'ready'): Member =>
    roster
      .fleetOf('e')
      .add(
        sampleWorker('w', { endpointId: 'e', state, handle: '{}', readyAt: state === 'ready' ? 1 : null }),
      );

  async function checks(member: Member, count: number): Promise<void> {
    for (let done = 0; done < count; done += 1) {
      clock.advance(CHECK_EVERY_MS);
      await health.check(member, endpoint, clock.now());
    }
  }

  test('and that hangs is unhealthy after three checks, and let go after six', async () => {
    answer = 'unhealthy';
    const member = adopted('ready');
    await checks(member, 2);
    assert.equal(member.unhealthy, null);
    await checks(member, 1);
    assert.deepEqual([member.unhealthy, dismissed], ['its health check fails', []]);
    await checks(member, 3);
    assert.deepEqual(dismissed, ['its health check fails']);
  });

  test('and that comes back takes requests again', async () => {
    answer = 'unhealthy';
    const member = adopted('ready');
    await checks(member, 5);
    answer = 'ready';
    await checks(member, 1);
    assert.deepEqual([member.address, member.strikes, member.unhealthy], [ADDRESS, 0, null]);
    answer = 'unhealthy';
    await checks(member, 5);
    assert.deepEqual(dismissed, []);
    roster.drop(member);
  });

  test('before it was ready is asked until it is, with no strikes: it has the time of its start', async () => {
    answer = 'starting';
    const member = adopted('starting');
    await checks(member, 20);
    assert.deepEqual([member.strikes, dismissed], [0, []]);
    answer = 'ready';
    while (member.address === undefined) await roster.changes.next('e', 1_000).changed;
    assert.equal(member.record.state, 'ready');
  });
});
