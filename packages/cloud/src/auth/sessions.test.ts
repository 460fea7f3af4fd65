import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createServiceContext } from '../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../testing/src/service-context.ts';
import type { Caller } from '../domain/caller.ts';
import type { ApiKey } from '../domain/records.ts';
import { SESSION_IDLE_MS, SESSION_LIFETIME_MS, SIGN_IN_LINK_LIFETIME_MS } from '../domain/session.ts';
import { ApiKeys } from '../resources/keys/api-keys.ts';
import { BerthError } from '../support/errors.ts';
import { hashApiKey } from '../support/crypto.ts';
import { Authenticator } from './authenticator.ts';
import { Sessions } from './sessions.ts';

const DAY_MS = 86_400_000;
const refusedAs = (code: string) => (error: unknown) => error instanceof BerthError && error.code === code;

describe('sessions', () => {
  let context: ServiceContext;
  let keys: ApiKeys;
  let sessions: Sessions;
  let authenticator: Authenticator;
  let ann: Caller;

  before(async () => {
    context = await createServiceContext();
    keys = new ApiKeys(context);
    sessions = new Sessions(context);
    authenticator = new Authenticator(context, undefined, sessions);
    ann = await context.account('ann');
  });
  after(() => context.close());

  async function signIn(
    fields: Partial<Parameters<ApiKeys['create']>[1]> = {},
  ): Promise<{ key: ApiKey; token: string; id: string }> {
    const { record } = await keys.create(ann, { name: 'k', access: 'all', ...fields });
    const { session, token } = await sessions.create(record, 'a browser', 'request');
    return { key: record, token, id: session.id };
  }

  test('act with the scopes of their key; only the hash of the token is stored', async () => {
    const { key, token, id } = await signIn({ access: 'read-only' });
    const found = await authenticator.authenticate(token);
    assert.deepEqual([found.id, found.access, found.sessionId], [key.id, 'read-only', id]);
    const stored = await sessions.list(ann);
    assert.equal(stored.find((session) => session.id === id)?.hash, hashApiKey(token));
    assert.doesNotMatch(JSON.stringify(stored), new RegExp(token));
    await assert.rejects(
      authenticator.authorize(token, { interface: 'rest-v2', scope: 'rest', mode: 'write', requestId: '' }),
      refusedAs('forbidden'),
    );
  });

  test('end with their key, when it is revoked or disabled', async () => {
    const revoked = await signIn();
    await keys.revoke(ann, revoked.key.id);
    await assert.rejects(authenticator.authenticate(revoked.token), refusedAs('unauthenticated'));
    const disabled = await signIn();
    await keys.update(ann, disabled.key.id, { enabled: false });
    await assert.rejects(authenticator.authenticate(disabled.token), refusedAs('unauthenticated'));
  });

  test('end when they are not used, and after their lifetime in any case', async () => {
    const idle = await signIn();
    context.clock.advance(SESSION_IDLE_MS);
    await assert.rejects(authenticator.authenticate(idle.token), refusedAs('unauthenticated'));
    const used = await signIn();
    for (let days = 0; days < SESSION_LIFETIME_MS / DAY_MS - 1; days += 1) {
      context.clock.advance(DAY_MS);
      assert.ok(await authenticator.authenticate(used.token));
      await sessions.saveLastUsed();
    }
    context.clock.advance(DAY_MS);
    await assert.rejects(authenticator.authenticate(used.token), refusedAs('unauthenticated'));
  });

  test('can be ended by their key, and by keys with full access of their account', async () => {
    const [one, two] = [await signIn(), await signIn({ access: 'read-only' })];
    const narrow: Caller = { ...ann, keyId: two.key.id, fullAccess: false };
    await assert.rejects(sessions.revoke(narrow, one.id), refusedAs('forbidden'));
    await sessions.revoke(narrow, two.id);
    await assert.rejects(authenticator.authenticate(two.token), refusedAs('unauthenticated'));
    const bob = await context.account('bob');
    await assert.rejects(sessions.revoke(bob, one.id), refusedAs('not-found'));
    await sessions.revoke(ann, one.id);
    await assert.rejects(authenticator.authenticate(one.token), refusedAs('unauthenticated'));
  });

  test('are not made from sessions', async () => {
    const { token } = await signIn();
    await assert.rejects(
      sessions.create(await authenticator.authenticate(token), '', 'request'),
      refusedAs('unauthenticated'),
    );
  });

  test('a link signs in once, and not after its time', async () => {
    const { record } = await keys.create(ann, { name: 'linked', access: 'all' });
    const caller: Caller = { ...ann, keyId: record.id };
    const { token } = await sessions.links.create(caller);
    const opened = await Promise.allSettled([sessions.links.redeem(token), sessions.links.redeem(token)]);
    assert.deepEqual(opened.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
    const late = await sessions.links.create(caller);
    context.clock.advance(SIGN_IN_LINK_LIFETIME_MS);
    await assert.rejects(sessions.links.redeem(late.token), refusedAs('unauthenticated'));
    const orphan = await sessions.links.create(caller);
    await keys.revoke(ann, record.id);
    await assert.rejects(sessions.links.redeem(orphan.token), refusedAs('unauthenticated'));
  });
});
