import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { runBerth } from './cli-test-harness.ts';
import { startFakeApiServer } from './fake-api-server.ts';

const accounts = [
  { id: 'acc1', name: 'team', status: 'active', createdAt: '2026-01-01T00:00:00.000Z' },
  { id: 'acc2', name: 'twin', status: 'active', createdAt: '2026-01-02T00:00:00.000Z' },
  { id: 'acc3', name: 'twin', status: 'active', createdAt: '2026-01-03T00:00:00.000Z' },
  { id: 'team', name: 'misnamed', status: 'active', createdAt: '2026-01-04T00:00:00.000Z' },
];
const created = { id: 'key1', key: 'rpa_SECRET', name: 'more than is printed' };

function envOf({ url }: { url: string }): Record<string, string> {
  return { BERTH_URL: url, BERTH_API_KEY: 'rpa_MINE' };
}

async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'berth-cli-'));
  t.after(() => rm(path, { recursive: true }));
  return path;
}

describe('account', () => {
  test('create prints id, name and key, and a note that the key is shown once', async () => {
    await using server = await startFakeApiServer({
      'POST /v2/accounts': { status: 201, body: { id: 'acc9', name: 'new team', key: 'rpa_NEW', extra: 1 } },
    });
    const piped = await runBerth(['account', 'create', 'new team'], { env: envOf(server) });
    assert.deepEqual(piped, { code: 0, out: '{"id":"acc9","name":"new team","key":"rpa_NEW"}\n', err: '' });
    assert.deepEqual(server.requests, [
      { method: 'POST', path: '/v2/accounts', authorization: 'Bearer rpa_MINE', body: { name: 'new team' } },
    ]);
    const seen = await runBerth(['account', 'create', 'new team'], { env: envOf(server), terminal: true });
    assert.match(seen.out, /^id:   acc9\nname: new team\nkey:  rpa_NEW\n.*shown once/);
    const asked = await runBerth(['account', 'create', 'new team', '--json'], {
      env: envOf(server),
      terminal: true,
    });
    assert.deepEqual(JSON.parse(asked.out), { id: 'acc9', name: 'new team', key: 'rpa_NEW' });
  });

  test('list prints a table, or the response as JSON', async () => {
    await using server = await startFakeApiServer({ 'GET /v2/accounts': { body: { accounts } } });
    assert.deepEqual(JSON.parse((await runBerth(['account', 'list'], { env: envOf(server) })).out), {
      accounts,
    });
    const { out } = await runBerth(['account', 'list'], { env: envOf(server), terminal: true });
    assert.equal(out.split('\n')[1], 'acc1  team      active  2026-01-01 00:00:00');
  });
});

describe('account limits', () => {
  const limits = [
    { name: 'pods', used: 3, limit: 3, warning: true },
    { name: 'queuedBytes', used: 1_500_000, limit: null, warning: false },
  ];

  test('sets limits with units, and shows what is used', async () => {
    await using server = await startFakeApiServer({
      'GET /v2/accounts': { body: { accounts } },
      'PATCH /v2/accounts/acc1/limits': { body: { accountId: 'acc1', limits } },
    });
    const argv = [
      'account',
      'limits',
      'acc1',
      '--set',
      'pods=3',
      '--set',
      'queuedBytes=5GB',
      '--set',
      'gpus=none',
    ];
    const { out } = await runBerth(argv, { env: envOf(server), terminal: true });
    assert.deepEqual(server.requests.at(-1)?.body, {
      pods: 3,
      queuedBytes: 5e9,
      gpus: null,
    });
    assert.deepEqual(
      out
        .split('\n')
        .map((line) => line.trimEnd())
        .slice(1, 3),
      ['pods         3       3        nearly or fully used', 'queuedBytes  1.5 MB  none     fine'],
    );
  });

  test('a limit that does not exist is named', async () => {
    await using server = await startFakeApiServer({});
    const { err } = await runBerth(['account', 'limits', 'acc1', '--set', 'pds=3'], { env: envOf(server) });
    assert.match(err, /"pds=3" is not a limit; allowed: NAME=VALUE with queuedJobs/);
  });
});

describe('key create', () => {
  test('sends the given options and prints only id and key', async () => {
    await using server = await startFakeApiServer({
      'POST /v2/account/api-keys': { status: 201, body: created },
    });
    const argv = [
      'key',
      'create',
      '--name',
      'n',
      '--access',
      'restricted',
      '--rest',
      'read',
      '--serverless',
      'write',
      '--endpoint',
      'e1',
      '--endpoint',
      'e2',
      '--expires',
      '12h',
    ];
    assert.deepEqual(await runBerth(argv, { env: envOf(server) }), {
      code: 0,
      out: '{"id":"key1","key":"rpa_SECRET"}\n',
      err: '',
    });
    assert.deepEqual(server.requests[0]?.body, {
      name: 'n',
      access: 'RESTRICTED',
      scopes: { rest: 'READ', graphql: 'NONE', serverless: 'WRITE' },
      endpoints: ['e1', 'e2'],
      expiresAt: '2026-01-01T12:00:00.000Z',
    });
  });

  test('sends no scopes for other levels, and write for an endpoint by default', async () => {
    await using server = await startFakeApiServer({
      'POST /v2/account/api-keys': { status: 201, body: created },
    });
    await runBerth(['key', 'create', '--name', 'n', '--access', 'all'], { env: envOf(server) });
    await runBerth(['key', 'create', '--name', 'n', '--access', 'read-only'], { env: envOf(server) });
    await runBerth(['key', 'create', '--name', 'n', '--access', 'restricted', '--endpoint', 'e'], {
      env: envOf(server),
    });
    assert.deepEqual(
      server.requests.map(({ body }) => body),
      [
        { name: 'n', access: 'ALL' },
        { name: 'n', access: 'READ_ONLY' },
        {
          name: 'n',
          access: 'RESTRICTED',
          scopes: { rest: 'NONE', graphql: 'NONE', serverless: 'WRITE' },
          endpoints: ['e'],
        },
      ],
    );
    const refused = await runBerth(['key', 'create', '--name', 'n', '--access', 'all', '--rest', 'read'], {
      env: envOf(server),
    });
    assert.equal(refused.code, 2);
    assert.match(refused.err, /go with --access restricted/);
  });

  test("finds an account by id, or else by a name that is one account's alone", async () => {
    await using server = await startFakeApiServer({
      'GET /v2/accounts': { body: { accounts } },
      'POST /v2/accounts/acc2/api-keys': { status: 201, body: created },
      'POST /v2/accounts/team/api-keys': { status: 201, body: created },
    });
    const create = (account: string) =>
      runBerth(['key', 'create', '--name', 'n', '--access', 'all', '--account', account], {
        env: envOf(server),
      });
    assert.equal((await create('acc2')).code, 0);
    assert.equal((await create('team')).code, 0);
    assert.equal((await create('misnamed')).code, 0);
    assert.match((await create('twin')).err, /2 accounts are called "twin"; name one by its id: acc2, acc3/);
    assert.match((await create('taem')).err, /no account "taem"; did you mean "team"\?/);
  });
});

test('key create --s3 needs no other option, and prints access id and secret', async () => {
  await using server = await startFakeApiServer({
    'POST /v2/account/s3-keys': {
      status: 201,
      body: { accessId: 'user_1', secret: 'rps_1', name: 'S3', access: 'ALL' },
    },
  });
  const env = envOf(server);
  assert.equal(
    (await runBerth(['key', 'create', '--s3'], { env })).out,
    '{"accessId":"user_1","secret":"rps_1"}\n',
  );
  assert.equal(
    (await runBerth(['key', 'create', '--s3', '--name', 'sync', '--access', 'read-only'], { env })).code,
    0,
  );
  assert.deepEqual(
    server.requests.map(({ body }) => body),
    [
      { name: 'S3', access: 'ALL' },
      { name: 'sync', access: 'READ_ONLY' },
    ],
  );
  assert.match(
    (await runBerth(['key', 'create', '--s3'], { env, terminal: true })).out,
    /secret: {3}rps_1\n.*shown once[^]*\/s3/,
  );
  assert.match(
    (await runBerth(['key', 'create', '--s3', '--access', 'restricted'], { env })).err,
    /--access all or read-only/,
  );
});

test('key list, key revoke and audit use the paths of their account', async () => {
  const apiKeys = [
    {
      id: 'k1',
      name: 'ci\u001b[31m',
      access: 'RESTRICTED',
      scopes: { rest: 'READ' },
      endpoints: [],
      enabled: true,
      createdAt: 'c',
      lastUsedAt: null,
      expiresAt: null,
    },
  ];
  const s3Keys = [
    {
      accessId: 'user_1',
      name: 'sync',
      access: 'READ_ONLY',
      createdAt: 'c',
      lastUsedAt: null,
      expiresAt: null,
    },
  ];
  const entries = [
    {
      at: '2026-01-01T00:00:00.000Z',
      action: 'create',
      resource: 'pod',
      resourceId: 'p',
      keyId: 'k1',
      interface: 'rest-v2',
    },
  ];
  await using server = await startFakeApiServer({
    'GET /v2/account/api-keys': { body: { apiKeys } },
    'GET /v2/accounts': { body: { accounts } },
    'GET /v2/accounts/acc1/api-keys': { body: { apiKeys: [] } },
    'GET /v2/account/s3-keys': { body: { s3Keys } },
    'GET /v2/accounts/acc1/s3-keys': { body: { s3Keys: [] } },
    'DELETE /v2/account/api-keys/k%2F1': { status: 204 },
    'DELETE /v2/account/s3-keys/user_1': { status: 204 },
    'GET /v2/account/audit-log?limit=5': { body: { entries } },
  });
  const env = envOf(server);
  assert.deepEqual(JSON.parse((await runBerth(['key', 'list'], { env })).out), { apiKeys, s3Keys });
  assert.deepEqual(JSON.parse((await runBerth(['key', 'ls'], { env })).out), { apiKeys, s3Keys });
  assert.match(
    (await runBerth(['key', 'list'], { env, terminal: true })).out,
    /k1 {6}API {3}ci\\u001b\[31m {2}RESTRICTED {2}rest=READ {2}- {10}yes {6}- {10}-\n/,
  );
  assert.match(
    (await runBerth(['key', 'list'], { env, terminal: true })).out,
    /user_1 {2}S3 {4}sync {10}READ_ONLY/,
  );
  assert.equal(
    (await runBerth(['key', 'list', '--account', 'acc1'], { env, terminal: true })).out,
    'There is no key yet.\n',
  );
  assert.equal((await runBerth(['key', 'revoke', 'k/1'], { env })).out, '{"id":"k/1","revoked":true}\n');
  assert.equal(
    (await runBerth(['key', 'revoke', 'user_1'], { env })).out,
    '{"id":"user_1","revoked":true}\n',
  );
  assert.deepEqual(JSON.parse((await runBerth(['audit', '--limit', '5'], { env })).out), { entries });
  assert.match((await runBerth(['audit', '--limit', 'many'], { env })).err, /--limit is "many"; allowed/);
});

test('an error is one line with the detail and every finding', async () => {
  await using server = await startFakeApiServer({
    'POST /v2/accounts': {
      status: 422,
      body: {
        title: 'Unprocessable',
        status: 422,
        detail: 'the body is not valid',
        errors: ['name: too long', 'name: no\nbreaks'],
      },
    },
    'GET /v2/accounts': { status: 502, text: '<html>' },
    'POST /v2/pods': {
      status: 400,
      body: {
        title: 'Bad Request',
        status: 400,
        detail: 'Request validation failed.',
        errors: ['$.disk: must be at most 4096, got 99999999', "$: missing property 'cpu'"],
      },
    },
    'GET /v2/account/api-keys': { text: '<html>' },
    'GET /v2/account/audit-log': { body: { other: [] } },
    'DELETE /v2/account/api-keys/x': { status: 401, body: { title: 'Unauthorized', status: 401 } },
  });
  const env = envOf(server);
  assert.equal(
    (await runBerth(['account', 'create', 'x'], { env })).err,
    'berth: the body is not valid; name: too long; name: no\\u000abreaks\n',
  );
  assert.equal(
    (await runBerth(['pod', 'create', '--disk', '99999999', 'local/shell'], { env })).err,
    'berth: disk must be at most 4096, got 99999999; cpu is missing\n',
  );
  assert.equal(
    (await runBerth(['account', 'list'], { env })).err,
    `berth: ${server.url} answered 502 Bad Gateway\n`,
  );
  assert.match((await runBerth(['key', 'list'], { env })).err, /does not answer as Berth does/);
  assert.match((await runBerth(['audit'], { env })).err, /answered without entries/);
  assert.equal(
    (await runBerth(['key', 'revoke', 'x'], { env })).err,
    'berth: Unauthorized; the key is from BERTH_API_KEY\n',
  );
});

test('a disk that is too small is refused with the flag, before any request', async () => {
  await using server = await startFakeApiServer({});
  const ran = await runBerth(['pod', 'create', '--gpu', 'x', '--volume', '5:/data', 'local/shell'], {
    env: envOf(server),
  });
  assert.deepEqual(
    [ran.code, ran.err],
    [2, 'berth: --volume is "5"; allowed: a whole number of at least 10\n'],
  );
  assert.deepEqual(server.requests, []);
});

describe('doctor', () => {
  test('passes on a healthy machine', async (t) => {
    await using server = await startFakeApiServer({
      'GET /healthz': {},
      'GET /readyz': {},
      'GET /v2/account/api-keys': { body: { apiKeys: [] } },
      'GET /v2/account/limits': {
        body: {
          limits: [
            { name: 'jobHours', limit: 24 },
            { name: 'logHours', limit: null },
          ],
        },
      },
      'GET /v2/system': {
        body: {
          dataCenters: [{ id: 'LOCAL-1', gpus: [{ id: 'NVIDIA L4', total: 2, free: 1, virtual: true }] }],
        },
      },
      'GET /v2/images': {
        body: {
          images: [
            { size: 1_000, endpoints: ['e'] },
            { size: 5_000, endpoints: [] },
          ],
        },
      },
    });
    const ran = await runBerth(['doctor', '--data', await folder(t)], { env: envOf(server) });
    assert.equal(ran.code, 0);
    const { checks } = JSON.parse(ran.out) as { checks: { check: string; ok: boolean; found: string }[] };
    assert.deepEqual(
      checks.map(({ check, ok }) => [check, ok]),
      [
        ['node', true],
        ['data folder', true],
        ['disk', true],
        ['sqlite', true],
        ['process isolation', true],
        ['docker', true],
        ['gpus', true],
        ['python', true],
        ['server', true],
        ['ready', true],
        ['key', true],
        ['gpus of the server', true],
        ['retention', true],
        ['images', true],
      ],
    );
    const found = (name: string): string => checks.find(({ check }) => check === name)?.found ?? '';
    assert.equal(found('gpus of the server'), '2 x NVIDIA L4 (virtual) in LOCAL-1');
    assert.equal(found('retention'), 'ended jobs: 24 h; logs: a week');
    assert.match(found('images'), /^deployed folders: 2 \(.*\); run by no endpoint: 1 \(.*berth image prune/);
  });

  test('says what is wrong and what to do', async (t) => {
    await using server = await startFakeApiServer({
      'GET /healthz': {},
      'GET /readyz': { status: 503 },
      'GET /v2/account/api-keys': { status: 401 },
    });
    const file = join(await folder(t), 'file');
    await writeFile(file, '');
    const ran = await runBerth(['doctor', '--data', file], { env: envOf(server), terminal: true });
    assert.equal(ran.code, 1);
    assert.match(ran.out, /^not {2}data folder .* is not a folder; choose another/m);
    assert.match(ran.out, /^not {2}ready .*\/readyz answers 503; look at its log/m);
    // Whole, however narrow the terminal is.
    assert.match(ran.out, /^ready: .*\/readyz answers 503; look at its log: a part that it needs/m);
    assert.match(ran.out, /^not {2}key .*from BERTH_API_KEY is refused; set BERTH_API_KEY/m);
    // On a busy machine it first says that the checks continue.
    assert.match(ran.err, /^(?:checking; .*\n)?berth: 3 of 11 checks are not ok\n$/);
  });
});
