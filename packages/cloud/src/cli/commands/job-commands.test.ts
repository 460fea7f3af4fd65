import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { runBerth } from '../cli-test-harness.ts';
import { startFakeApiServer } from '../fake-api-server.ts';

const ENDPOINTS = {
  'GET /v2/serverless': {
    body: { endpoints: [{ id: 'e1', name: 'echo', type: 'QUEUE' }], pagination: { nextCursor: null } },
  },
};
const queued = { id: 'j1', status: 'IN_QUEUE' };
const withoutTimes = (text: string): string[] => text.replace(/^[\d.]+ s {2}/gm, '').split('\n');
const envOf = ({ url }: { url: string }) => ({ BERTH_URL: url, BERTH_API_KEY: 'rpa_MINE' });

describe('run', () => {
  test('shows what the job waits for on one line each, then its input and output', async () => {
    const installing = `installing packages\n${'x'.repeat(600)}`;
    await using server = await startFakeApiServer({
      ...ENDPOINTS,
      'POST /v2/e1/run': { body: queued },
      'GET /v2/e1/status-sync/j1?wait=1000': {
        body: { ...queued, reason: installing },
      },
      'GET /v2/e1/status-sync/j1?wait=2000': {
        body: { id: 'j1', status: 'COMPLETED', input: {}, output: [] },
      },
    });
    const ran = await runBerth(['run', 'echo', '{}', '--sync'], { env: envOf(server), terminal: true });
    assert.equal(ran.out, 'id:     j1\nstatus: COMPLETED\ninput:  {}\noutput: []\n', ran.err);
    assert.deepEqual(withoutTimes(ran.err), [
      'job j1 waits in the queue',
      `waits in the queue: installing packages ${'x'.repeat(99)}…`,
      'is COMPLETED',
      '',
    ]);
  });

  test('--stream: after the first output comes only how the job ended', async () => {
    await using server = await startFakeApiServer({
      ...ENDPOINTS,
      'POST /v2/e1/run': { body: queued },
      'GET /v2/e1/stream/j1': { text: 'data: {"output":"one"}\n\ndata: {"output":"two"}\n\n' },
      // Answers that come late: the job has already ended.
      'GET /v2/e1/status-sync/j1?wait=1000': { body: { ...queued, reason: 'a worker is starting' } },
      'GET /v2/e1/status-sync/j1?wait=2000': { body: { id: 'j1', status: 'COMPLETED', output: [] } },
    });
    let transcript = '';
    const onWrite = (text: string): void => void (transcript += text);
    await runBerth(['run', 'echo', '{}', '--stream'], { env: envOf(server), terminal: true, onWrite });
    const lines = withoutTimes(transcript);
    assert.equal(lines[0], 'job j1 waits in the queue');
    assert.deepEqual(lines.slice(lines.indexOf('one')), ['one', 'two', 'is COMPLETED', ''], transcript);
  });

  test('ends with 124 when the time is over, and says how to go on', async () => {
    await using server = await startFakeApiServer({
      ...ENDPOINTS,
      'POST /v2/e1/run': { body: queued },
      'GET /v2/e1/status-sync/j1?wait=1000': { body: { ...queued, reason: 'no worker is wanted' } },
    });
    const argv = ['run', 'echo', '{}', '--sync', '--timeout', '0.001'];
    assert.equal((await runBerth(argv, { env: envOf(server) })).code, 2);
    const ran = await runBerth(['run', 'echo', '{}', '--sync', '--timeout', '1'], { env: envOf(server) });
    assert.equal(ran.code, 124);
    assert.match(
      ran.err,
      /job j1 is still IN_QUEUE after 1.0 s: no worker is wanted\n.*\n.*watch.*\n {2}berth job cancel echo j1\n/,
    );
  });

  test('says what to type next as the user types it', async () => {
    await using server = await startFakeApiServer({ ...ENDPOINTS, 'POST /v2/e1/run': { body: queued } });
    const run = (env = {}) =>
      runBerth(['run', 'echo', '{}'], { env: { ...envOf(server), ...env }, terminal: true });
    assert.match((await run()).out, /Its log:\n {2}berth logs echo --job j1 -f\n/);
    assert.match((await run({ npm_command: 'exec' })).out, /Its log:\n {2}npx berth logs echo --job j1 -f\n/);
  });

  test('says again how the job stands while nothing changes', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    await using server = await startFakeApiServer({
      ...ENDPOINTS,
      'POST /v2/e1/run': { body: queued },
      'GET /v2/e1/status-sync/j1?wait=1000': { body: { ...queued, reason: 'installing packages' } },
    });
    const onWrite = (text: string): void => {
      if (/s {2}waits in the queue: installing/.test(text)) t.mock.timers.tick(15_000);
    };
    const { err } = await runBerth(['run', 'echo', '{}', '--sync', '--timeout', '1'], {
      env: envOf(server),
      onWrite,
    });
    assert.deepEqual(withoutTimes(err).slice(0, 3), [
      'job j1 waits in the queue',
      'waits in the queue: installing packages',
      'still waits in the queue: installing packages',
    ]);
  });

  test('breaks no word at 80 columns', async () => {
    const reason = 'no worker can be placed: ' + 'the image asks for a container engine '.repeat(2);
    const id = '00067a94-1a14-8089-9f6b-a33a5446758e-u1';
    await using server = await startFakeApiServer({
      ...ENDPOINTS,
      'POST /v2/e1/run': { body: { ...queued, id } },
      [`GET /v2/e1/status-sync/${id}?wait=1000`]: { body: { ...queued, id, reason } },
    });
    const ran = await runBerth(['run', 'echo', '{}', '--sync', '--timeout', '1'], {
      env: { ...envOf(server), npm_command: 'exec' },
      terminal: true,
      columns: 80,
    });
    assert.equal(ran.code, 124);
    assert.match(ran.err, new RegExp(`^ {2}npx berth job cancel echo ${id}$`, 'm'));
    for (const line of ran.err.split('\n')) assert.ok(line.length <= 80, line);
  });

  test('Ctrl-C ends with 130; the job goes on, or is cancelled', async () => {
    await using server = await startFakeApiServer({
      ...ENDPOINTS,
      'POST /v2/e1/run': { body: queued },
      'POST /v2/e1/cancel/j1': { body: { id: 'j1', status: 'CANCELLED' } },
    });
    const interrupted = AbortSignal.abort();
    const options = { env: envOf(server), interrupted };
    const left = await runBerth(['run', 'echo', '{}', '--sync'], options);
    assert.equal(left.code, 130);
    assert.match(
      left.err,
      /the job goes on; .*\n {2}berth job watch echo j1\n {2}berth job cancel echo j1\n/,
    );
    const cancelled = await runBerth(['run', 'echo', '{}', '--sync', '--cancel-on-interrupt'], options);
    assert.equal(cancelled.code, 130);
    assert.match(cancelled.err, /job j1 is CANCELLED\n$/);
  });

  test('a failed job shows its error once, as text', async () => {
    const error = JSON.stringify({ error_message: 'no model', error_traceback: 'Traceback:\n  line 3' });
    await using server = await startFakeApiServer({
      ...ENDPOINTS,
      'POST /v2/e1/run': { body: { id: 'j1', status: 'FAILED', error } },
    });
    const ran = await runBerth(['run', 'echo', '{}', '--sync', '-q'], { env: envOf(server), terminal: true });
    assert.equal(ran.code, 1);
    assert.equal(ran.out, 'id:     j1\nstatus: FAILED\n');
    assert.equal(ran.err, 'berth: job j1 is FAILED: no model\nberth: Traceback:\nberth:   line 3\n');
    // As a generator of the Python SDK reports it.
    await using other = await startFakeApiServer({
      ...ENDPOINTS,
      'POST /v2/e1/run': { body: { id: 'j1', status: 'FAILED', error: "handler: 'text' \n" } },
    });
    const generator = await runBerth(['run', 'echo', '{}', '--sync', '-q'], { env: envOf(other) });
    assert.equal(generator.err, "berth: job j1 is FAILED: handler: 'text'\n");
  });
});

describe('job', () => {
  const job = {
    id: 'j1',
    status: 'FAILED',
    createdAt: '2026-01-02T03:04:05.000Z',
    delayTime: 1500,
    executionTime: 20,
    error: 'no model 3',
    inputPreview: '{}',
  };

  test('ls follows the pages of a search', async () => {
    const page = (jobs: object[], nextCursor: string | null) => ({
      body: { jobs, pagination: { nextCursor } },
    });
    await using server = await startFakeApiServer({
      ...ENDPOINTS,
      'GET /v2/serverless/e1/jobs?text=fox&status=FAILED%2CTIMED_OUT&limit=50': page([], 'j9'),
      'GET /v2/serverless/e1/jobs?text=fox&status=FAILED%2CTIMED_OUT&limit=50&cursor=j9': page([job], null),
    });
    const argv = ['job', 'ls', 'echo', '--status', 'FAILED', '--status', 'TIMED_OUT', '--text', 'fox'];
    const ran = await runBerth(argv, { env: envOf(server), terminal: true });
    assert.equal(
      ran.out,
      'ID  STATUS  CREATED              ERROR OR INPUT  WAITED  RAN\nj1  FAILED  2026-01-02 03:04:05 ' +
        ' no model 3      1.5 s   0.0 s\n',
      ran.err,
    );
    assert.equal((await runBerth([...argv, '-o', 'name'], { env: envOf(server) })).out, 'j1\n');
  });

  test('redrive sends a group again, and one job with another input', async () => {
    const result = { done: 1, jobs: [{ id: 'j1', newId: 'j2' }], skipped: [], nextCursor: null };
    await using server = await startFakeApiServer({
      ...ENDPOINTS,
      'POST /v2/serverless/e1/jobs/redrive': { body: result },
    });
    const env = envOf(server);
    const sent = (): unknown => server.requests.at(-1)?.body;
    const group = await runBerth(['job', 'redrive', 'echo', '--fingerprint', 'abc'], { env });
    assert.deepEqual(JSON.parse(group.out), { done: 1, jobs: result.jobs, skipped: [] });
    assert.deepEqual(sent(), { filter: { fingerprint: 'abc' } });
    await runBerth(['job', 'redrive', 'echo', 'j1', '--input', '{"n": 2}'], { env });
    assert.deepEqual(sent(), { ids: ['j1'], input: { n: 2 } });
    await runBerth(['job', 'redrive', 'echo', '--all'], { env });
    assert.deepEqual(sent(), { filter: {} });
    await runBerth(['job', 'redrive', 'echo', 'j1', 'j2,j3', 'j4\nj5\n'], { env });
    assert.deepEqual(sent(), { ids: ['j1', 'j2', 'j3', 'j4', 'j5'] });
    assert.match((await runBerth(['job', 'retry', '-h'], { env })).out, /retry ENDPOINT \[JOB\.\.\.\] /);
    await runBerth(['job', 'redrive', 'echo', '--all', '--patch', '{"n": 3, "old": null}'], { env });
    assert.deepEqual(sent(), { filter: {}, inputPatch: { n: 3, old: null } });
    const list = await runBerth(['job', 'redrive', 'echo', '--all', '--patch', '[1]'], { env });
    assert.deepEqual([list.code, /the patch is not a JSON object/.test(list.err)], [2, true]);
    const nothing = await runBerth(['job', 'redrive', 'echo'], { env });
    assert.deepEqual([nothing.code, /by their ids/.test(nothing.err)], [2, true]);
  });
});

describe('job export', () => {
  test('writes whole inputs, which redrive reads back in batches', async () => {
    const entries = Array.from({ length: 1_001 }, (_, n) => ({ id: `j${n}`, input: { n } }));
    const result = { done: 1, jobs: [], skipped: [], nextCursor: null };
    await using server = await startFakeApiServer({
      ...ENDPOINTS,
      'GET /v2/serverless/e1/jobs?status=FAILED&limit=1': {
        body: { jobs: [{ id: 'j0' }], pagination: { nextCursor: null } },
      },
      'GET /v2/serverless/e1/jobs/j0': {
        body: { id: 'j0', status: 'FAILED', error: 'no', input: { n: 0 }, output: null },
      },
      'POST /v2/serverless/e1/jobs/redrive': { body: result },
    });
    const env = envOf(server);
    const exported = await runBerth(['job', 'export', 'echo', '--status', 'FAILED', '--limit', '1'], { env });
    assert.equal(exported.out, '{"id":"j0","status":"FAILED","error":"no","input":{"n":0}}\n', exported.err);

    const redrive = ['job', 'redrive', 'echo', '--inputs', '-'];
    const lines = entries.map((entry) => `${JSON.stringify({ ...entry, status: 'FAILED' })}\n`).join('');
    const sent = await runBerth(redrive, { env, input: lines });
    assert.equal(JSON.parse(sent.out).done, 2, sent.err);
    assert.deepEqual(
      server.requests.slice(-2).map(({ body }) => body),
      [{ inputs: entries.slice(0, 1_000) }, { inputs: entries.slice(1_000) }],
    );
    await runBerth(redrive, { env, input: JSON.stringify(entries.slice(0, 2)) });
    assert.deepEqual(server.requests.at(-1)?.body, { inputs: entries.slice(0, 2) });

    const bad = await runBerth(redrive, { env, input: '{"id": "j1", "input": 1}\n{"id": "j2"}\n' });
    assert.equal(bad.code, 2);
    assert.match(bad.err, /the standard input, line 2: must be \{"id": "…", "input": …\}/);
    const two = await runBerth([...redrive, '--all'], { env, input: lines });
    assert.deepEqual([two.code, /name jobs by their ids/.test(two.err)], [2, true]);
  });
});

describe('resources', () => {
  test('are listed, created, changed and deleted by one description', async () => {
    const template = { id: 't1', name: 'web', image: 'i', disk: 5, public: false };
    await using server = await startFakeApiServer({
      'GET /v2/templates': { body: { templates: [template], pagination: { nextCursor: null } } },
      'POST /v2/templates': { status: 201, body: template },
      'PATCH /v2/templates/t1': { body: template },
      'DELETE /v2/templates/t1': { status: 204 },
    });
    const env = envOf(server);
    const listed = await runBerth(['template', 'list'], { env, terminal: true });
    assert.equal(listed.out, 'ID  NAME  IMAGE  DISK  PUBLIC\nt1  web   i      5     no\n', listed.err);
    assert.equal(
      (await runBerth(['template', 'ls', '-o', 'yaml'], { env })).out.split('\n')[0],
      'templates:',
    );
    const fields = ['--set', 'name=web', '--set', 'disk=5', '--set', 'env.A=@-'];
    await runBerth(['template', 'create', ...fields], { env, input: 'secret\n' });
    assert.deepEqual(server.requests.at(-1)?.body, { name: 'web', disk: 5, env: { A: 'secret' } });
    assert.equal((await runBerth(['template', 'update', 'web', '--set', 'disk=6'], { env })).code, 0);
    assert.deepEqual(server.requests.at(-1)?.body, { disk: 6 });
    await runBerth(['template', 'update', 'web', '--set', 'name=007', '--set', 'description=null'], { env });
    assert.deepEqual(server.requests.at(-1)?.body, { name: '007', description: null });
    assert.deepEqual(JSON.parse((await runBerth(['template', 'rm', 'web'], { env })).out), {
      id: 't1',
      deleted: true,
    });
    assert.match((await runBerth(['template', 'get', 'wbe'], { env })).err, /did you mean "web"\?/);
  });
});

test('completion knows every command, for each shell', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { out, code } = await runBerth(['completion', shell]);
    assert.equal(code, 0);
    assert.match(out, /redrive/);
    assert.match(out, /cancel-on-interrupt/);
  }
  assert.equal((await runBerth(['completion', 'tcsh'])).code, 2);
});
