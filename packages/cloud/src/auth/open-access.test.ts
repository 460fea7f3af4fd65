import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import type { CloudEventBus } from '../domain/events.ts';
import { BerthError } from '../support/errors.ts';
import { EventBus } from '../support/event-bus.ts';
import { OpenAccesses } from './open-access.ts';
import type { GrantedAccess } from './open-access.ts';

const refused = (): BerthError => new BerthError('unauthenticated', 'invalid API key');

describe('what is open ends with its key', () => {
  let events: CloudEventBus;
  let accesses: OpenAccesses;
  let now: number;
  let revoked: string[];

  beforeEach(() => {
    mock.timers.enable({ apis: ['setInterval'] });
    events = new EventBus();
    now = 1_000;
    revoked = [];
    accesses = new OpenAccesses({ events, clock: { now: () => now } });
  });

  afterEach(() => {
    accesses.close();
    mock.timers.reset();
  });

  const open = (
    name: string,
    authorize: () => Promise<GrantedAccess>,
    { credential = name, expiresAt = null }: { credential?: string; expiresAt?: number | null } = {},
  ): (() => void) =>
    accesses.watch({
      credential,
      expiresAt,
      authorize,
      revoke: ({ code }) => revoked.push(`${name} ${code}`),
    });
  /** Checks run in promises. */
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  test('when keys change, and only that of the key that lost its access', async () => {
    let hasAccess = true;
    open('a', async () => (hasAccess ? {} : Promise.reject(refused())));
    open('b', async () => ({}));
    events.publish('keys.changed', { source: 'other-server' });
    await settle();
    assert.deepEqual(revoked, []);
    hasAccess = false;
    events.publish('keys.changed', { source: 'request' });
    await settle();
    assert.deepEqual(revoked, ['a unauthenticated']);
    assert.equal(accesses.size, 1);
  });

  test('within half a second of the time at which it expires', async () => {
    open('a', async () => (now < 5_000 ? { expiresAt: 5_000 } : Promise.reject(refused())), {
      expiresAt: 5_000,
    });
    now = 4_999;
    mock.timers.tick(400);
    await settle();
    assert.deepEqual(revoked, []);
    now = 5_000;
    mock.timers.tick(400);
    await settle();
    assert.deepEqual(revoked, ['a unauthenticated']);
  });

  test('not where its time was extended meanwhile', async () => {
    open('a', async () => ({ expiresAt: 9_000 }), { expiresAt: 5_000 });
    now = 6_000;
    mock.timers.tick(400);
    await settle();
    assert.deepEqual(revoked, []);
    assert.equal(accesses.size, 1);
  });

  test('not where the store does not answer: the next check decides', async () => {
    let error: Error = new BerthError('unavailable', 'the database does not answer');
    open('a', async () => Promise.reject(error));
    events.publish('keys.changed', { source: 'request' });
    await settle();
    assert.deepEqual(revoked, []);
    error = refused();
    mock.timers.tick(20_000);
    await settle();
    assert.deepEqual(revoked, ['a unauthenticated']);
  });

  test('what shares a key is checked one after the other, and what was closed not at all', async () => {
    let [running, most, checks] = [0, 0, 0];
    const authorize = async (): Promise<GrantedAccess> => {
      running += 1;
      checks += 1;
      most = Math.max(most, running);
      await settle();
      running -= 1;
      return {};
    };
    const closed = open('a', authorize, { credential: 'shared' });
    open('b', authorize, { credential: 'shared' });
    open('c', authorize, { credential: 'shared' });
    closed();
    events.publish('keys.changed', { source: 'request' });
    for (let turn = 0; turn < 10; turn += 1) await settle();
    assert.deepEqual([most, checks], [1, 2]);
  });
});
