import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { runBerth } from '../packages/testing/src/berth-command.ts';
import type { CommandResult } from '../packages/testing/src/berth-command.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';

interface Made {
  id: string;
  name: string;
  key: string;
}

for (const kind of DATABASES)
  describe(`the command line, on ${kind}`, () => {
    const fixture = serverFixture(kind);
    /** On the server's own machine, with nothing set up. */
    const berth = <T = Record<string, unknown>>(...args: string[]): Promise<CommandResult<T>> =>
      runBerth<T>([...args, '--data', fixture.database.data]);
    /** From anywhere else, with a key. */
    const berthAs = <T = Record<string, unknown>>(
      key: string,
      ...args: string[]
    ): Promise<CommandResult<T>> => runBerth<T>(args, { BERTH_URL: fixture.server.url, BERTH_API_KEY: key });
    const accepted = async (key: string, method: string, path: string, body?: unknown): Promise<boolean> =>
      (await fixture.client(key).call(method, path, body)).status < 300;
    let team: Made;

    test('account create answers {id, name, key}, and the key opens the account', async () => {
      const made = await berth<Made>('account', 'create', 'team');
      assert.deepEqual([made.code, made.stderr], [0, '']);
      team = made.json;
      assert.deepEqual(Object.keys(team), ['id', 'name', 'key']);
      assert.equal(team.name, 'team');
      const { body } = await fixture.client(team.key).call('GET', '/v2/account');
      assert.deepEqual([body['id'], body['name']], [team.id, 'team']);
    });

    test('account list shows all accounts, to the operator alone', async () => {
      const listed = await berth<{ accounts: Made[] }>('account', 'list', '--json');
      assert.deepEqual(listed.json.accounts.map(({ name }) => name).sort(), ['root', 'team']);
      const refused = await berthAs(team.key, 'account', 'list');
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /^berth: access denied/);
    });

    test('a name that is taken is refused in words', async () => {
      const refused = await berth('account', 'create', 'team');
      assert.deepEqual([refused.code, refused.stdout], [1, '']);
      assert.match(refused.stderr, /^berth: an account named "team" exists already/);
    });

    test('key create answers {id, key} for every kind of key, and each opens what it should', async () => {
      const all = await berthAs<Made>(team.key, 'key', 'create', '--name', 'all', '--access', 'all');
      assert.deepEqual(Object.keys(all.json), ['id', 'key']);
      assert.equal(
        await accepted(all.json.key, 'POST', '/v2/templates', { name: 'by-all', image: 'a' }),
        true,
      );

      const reader = await berthAs<Made>(
        team.key,
        'key',
        'create',
        '--name',
        'reader',
        '--access',
        'read-only',
      );
      assert.equal(await accepted(reader.json.key, 'GET', '/v2/templates'), true);
      assert.equal(
        await accepted(reader.json.key, 'POST', '/v2/templates', { name: 'by-reader', image: 'a' }),
        false,
      );

      const narrow = await berthAs<Made>(
        team.key,
        'key',
        'create',
        '--name',
        'narrow',
        '--access',
        'restricted',
        '--rest',
        'read',
        '--endpoint',
        'e1',
        '--endpoint',
        'e2',
        '--expires',
        '7d',
      );
      assert.equal(await accepted(narrow.json.key, 'GET', '/v1/templates'), true);
      assert.equal(
        await accepted(narrow.json.key, 'POST', '/v1/templates', { name: 'x', imageName: 'a' }),
        false,
      );
      assert.equal((await fixture.client(narrow.json.key).graphql('{ myself { id } }')).status, 403);
      const { json } = await berthAs<{ apiKeys: Record<string, unknown>[] }>(team.key, 'key', 'list');
      const shown = json.apiKeys.find(({ id }) => id === narrow.json.id);
      assert.deepEqual(shown?.['scopes'], { rest: 'READ', graphql: 'NONE', serverless: 'WRITE' });
      assert.deepEqual(shown?.['endpoints'], ['e1', 'e2']);
      const days = (Date.parse(String(shown?.['expiresAt'])) - Date.now()) / 86_400_000;
      assert.ok(days > 6.9 && days <= 7);
    });

    test('the operator makes and lists keys for any account, by id or name', async () => {
      for (const account of ['team', team.id]) {
        const made = await berth<Made>(
          'key',
          'create',
          '--name',
          'given',
          '--access',
          'all',
          '--account',
          account,
        );
        assert.equal(made.code, 0, made.stderr);
        assert.equal((await fixture.client(made.json.key).call('GET', '/v2/account')).body['id'], team.id);
      }
      const listed = await berth<{ apiKeys: { name: string }[] }>('key', 'list', '--account', 'team');
      assert.equal(listed.json.apiKeys.filter(({ name }) => name === 'given').length, 2);
      const unknown = await berth('key', 'list', '--account', 'taem');
      assert.equal(unknown.code, 1);
      assert.match(unknown.stderr, /did you mean "team"/);
    });

    test('key revoke holds at once, and a second time says that there is none', async () => {
      const made = await berthAs<Made>(team.key, 'key', 'create', '--name', 'short', '--access', 'all');
      const revoked = await berthAs(team.key, 'key', 'revoke', made.json.id);
      assert.deepEqual(revoked.json, { id: made.json.id, revoked: true });
      assert.equal((await fixture.client(made.json.key).call('GET', '/v2/account')).status, 401);
      const again = await berthAs(team.key, 'key', 'revoke', made.json.id);
      assert.deepEqual([again.code, again.stdout], [1, '']);
      assert.match(again.stderr, /not found/);
    });

    test('audit lists who made each change', async () => {
      const { json } = await berthAs<{ entries: Record<string, unknown>[] }>(
        team.key,
        'audit',
        '--limit',
        '2',
      );
      assert.deepEqual(
        json.entries.map(({ action, resource, interface: through }) => [action, resource, through]),
        [
          ['revoke', 'API key', 'rest-v2'],
          ['create', 'API key', 'rest-v2'],
        ],
      );
    });

    test('doctor finds a server that is well', async () => {
      const checked = await berth<{ checks: { check: string; ok: boolean }[] }>('doctor');
      assert.deepEqual(
        checked.json.checks.filter(({ ok }) => !ok),
        [],
      );
      assert.equal(checked.code, 0);
    });

    test('a wrong key, an unreachable server and invalid arguments give different errors', async () => {
      const wrong = await berthAs('rpa_wrong', 'key', 'list');
      assert.equal(wrong.code, 1);
      assert.match(wrong.stderr, /invalid API key; the key is from BERTH_API_KEY/);
      const away = await runBerth(['key', 'list'], { BERTH_URL: 'http://127.0.0.1:9', BERTH_API_KEY: 'x' });
      assert.equal(away.code, 1);
      assert.match(away.stderr, /Berth does not answer at http:\/\/127\.0\.0\.1:9; start it/);
      for (const args of [
        ['key', 'create', '--name', 'x'],
        ['key', 'creat'],
        ['key', 'create', '--name', 'x', '--access', 'some'],
        ['key', 'create', '--name', 'x', '--access', 'all', '--rest', 'read'],
        ['account', 'create'],
      ]) {
        const nonsense = await runBerth(args);
        assert.equal(nonsense.code, 2, args.join(' '));
        assert.doesNotMatch(nonsense.stderr, /\n {4}at /);
      }
    });
  });
