import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { runBerth } from './cli-test-harness.ts';
import { startFakeApiServer } from './fake-api-server.ts';

const accounts = [{ id: 'acc1', name: 'team', status: 'active', createdAt: '2026-01-01T00:00:00.000Z' }];

function envOf({ url }: { url: string }): Record<string, string> {
  return { BERTH_URL: url, BERTH_API_KEY: 'rpa_MINE' };
}

async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'berth-cli-'));
  t.after(() => rm(path, { recursive: true }));
  return path;
}

describe('where a command finds the server', () => {
  test('the one of the data folder, with its root key', async (t) => {
    await using server = await startFakeApiServer({ 'GET /v2/accounts': { body: { accounts: [] } } });
    const data = await folder(t);
    await writeFile(join(data, 'server.json'), JSON.stringify({ url: server.url, pid: 1 }));
    await writeFile(join(data, 'root.key'), 'rpa_ROOT\n');
    assert.equal((await runBerth(['account', 'list', '--data', data])).code, 0);
    assert.equal((await runBerth(['account', 'list'], { env: { BERTH_DATA: data } })).code, 0);
    assert.equal(
      (await runBerth(['account', 'list'], { env: { BERTH_DATA: data, BERTH_URL: `${server.url}/` } })).code,
      0,
    );
    assert.equal(
      (await runBerth(['account', 'list'], { env: { BERTH_DATA: data, BERTH_API_KEY: 'rpa_MINE' } })).code,
      0,
    );
    assert.deepEqual(
      server.requests.map(({ authorization }) => authorization),
      ['Bearer rpa_ROOT', 'Bearer rpa_ROOT', 'Bearer rpa_ROOT', 'Bearer rpa_MINE'],
    );
  });

  test('the root key goes to no other server', async (t) => {
    await using server = await startFakeApiServer({
      'GET /v2/accounts': {
        status: 401,
        body: { title: 'Unauthorized', status: 401, detail: 'a key is needed' },
      },
    });
    const data = await folder(t);
    await writeFile(join(data, 'root.key'), 'rpa_ROOT\n');
    const ran = await runBerth(['account', 'list'], { env: { BERTH_DATA: data, BERTH_URL: server.url } });
    assert.equal(server.requests[0]?.authorization, undefined);
    assert.equal(ran.code, 1);
    assert.equal(
      ran.err,
      'berth: a key is needed; no key was sent: BERTH_URL is set without BERTH_API_KEY; set ' +
        'BERTH_API_KEY or use "berth login URL"\n',
    );
  });

  test('a key that is not a valid header value is reported as such', async (t) => {
    await using server = await startFakeApiServer({});
    for (const key of ['rpa_\u2026', 'rpa_ONE rpa_TWO', 'rpa_ONE\nrpa_TWO']) {
      const ran = await runBerth(['account', 'list'], { env: { BERTH_URL: server.url, BERTH_API_KEY: key } });
      assert.deepEqual(
        [ran.code, ran.err],
        [
          1,
          'berth: the key from BERTH_API_KEY has a space or another character that no key has; copy it again\n',
        ],
      );
    }
    const data = await folder(t);
    await writeFile(join(data, 'root.key'), 'rpa_\u00e9\n');
    const ran = await runBerth(['exec', 'pod', 'true'], { env: { BERTH_DATA: data } });
    assert.match(ran.err, /^berth: the key from .*root\.key has a space or another character/);
    assert.deepEqual(server.requests, []);
  });

  test('an unreachable server is reported with what to do', async () => {
    const server = await startFakeApiServer({});
    await server[Symbol.asyncDispose]();
    const ran = await runBerth(['key', 'list'], { env: envOf(server) });
    assert.deepEqual(ran, {
      code: 1,
      out: '',
      err:
        `berth: Berth does not answer at ${server.url}; connection refused, nothing listens there; ` +
        `start it with "npm start" or set BERTH_URL\n`,
    });
    assert.match(
      (await runBerth(['key', 'list'], { env: { BERTH_URL: 'localhost:1' } })).err,
      /BERTH_URL is "localhost:1"; allowed/,
    );
    for (const argv of [
      ['key', 'list'],
      ['login', 'http://127.0.0.1:9/v2'],
    ])
      assert.match(
        (await runBerth(argv, { env: { BERTH_URL: 'http://127.0.0.1:9/v2' } })).err,
        /is "http:\/\/127\.0\.0\.1:9\/v2"; leave out \/v2: http:\/\/127\.0\.0\.1:9 is the server\n/,
      );
  });

  test('a broken server.json is reported', async (t) => {
    const data = await folder(t);
    await writeFile(join(data, 'server.json'), '{"url"');
    assert.match(
      (await runBerth(['key', 'list', '--data', data])).err,
      /server.json is not readable as JSON; restart Berth/,
    );
  });

  test('a login is kept, used, and named by --context', async (t) => {
    await using server = await startFakeApiServer({
      'GET /v2/account': { body: { id: 'acc1', name: 'team' } },
      'GET /v2/accounts': { body: { accounts } },
    });
    const env = { XDG_CONFIG_HOME: await folder(t) };
    const login = await runBerth(['login', `${server.url}/`, '--name', 'work'], { env, input: 'rpa_KEPT\n' });
    assert.deepEqual(JSON.parse(login.out), { context: 'work', url: server.url, account: 'team' });
    assert.equal((await runBerth(['account', 'ls'], { env })).code, 0);
    assert.equal(server.requests.at(-1)?.authorization, 'Bearer rpa_KEPT');
    const elsewhere = { ...env, BERTH_URL: 'http://127.0.0.1:9', BERTH_API_KEY: 'other' };
    assert.equal((await runBerth(['account', 'ls', '--context', 'work'], { env: elsewhere })).code, 0);
    assert.equal((await runBerth(['account', 'ls'], { env: elsewhere })).code, 1);
    const shown = await runBerth(['context', 'ls'], { env });
    assert.equal(shown.out.includes('rpa_KEPT'), false);
    assert.match((await runBerth(['ps', '--context', 'wrok'], { env })).err, /did you mean "work"\?/);
    assert.equal((await runBerth(['context', 'rm', 'work'], { env })).code, 0);
    assert.deepEqual(JSON.parse((await runBerth(['context', 'ls'], { env })).out), { contexts: [] });
  });

  test('the cause of a failed connection is named', async () => {
    await using server = await startFakeApiServer({});
    const message = async (url: string): Promise<string> =>
      (await runBerth(['ps'], { env: { BERTH_URL: url, BERTH_API_KEY: 'x' } })).err;
    assert.match(await message(server.url.replace('http:', 'https:')), /TLS: the server speaks plain HTTP/);
    assert.match(await message('http://no-such-host.invalid'), /name of the server/);
    await using older = await startFakeApiServer({
      'GET /v2/serverless': { status: 404, body: { title: 'Not Found', detail: 'no such address' } },
    });
    assert.match(await message(older.url), /may be of an earlier version/);
  });
});
