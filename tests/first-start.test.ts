import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import { DATABASES, createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { BERTH_COMMAND, runBerth } from '../packages/testing/src/berth-command.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { findPtyProgram } from '../packages/cloud/src/engines/process/pty.ts';
import { parseLogLines } from '../packages/testing/src/server-fixture.ts';

/** What a start prints on a terminal; the server is stopped then. */
async function outputOnTerminal(data: string, rootKey = ''): Promise<string> {
  const child = spawn('script', ['-qefc', `${BERTH_COMMAND} up --port 0 --data ${data}`, '/dev/null'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      BERTH_DOCKER: 'off',
      BERTH_ROOT_KEY: rootKey,
    },
  });
  let output = '';
  const closed = once(child, 'close');
  for await (const piece of child.stdout.setEncoding('utf8')) {
    output += piece as string;
    if (!/root key [^\n]*\n/.test(output)) continue;
    const { pid } = JSON.parse(readFileSync(join(data, 'server.json'), 'utf8')) as { pid: number };
    process.kill(pid, 'SIGTERM');
    break;
  }
  child.stdout.resume();
  await closed;
  return output;
}

for (const kind of DATABASES) {
  describe(`the first start, on ${kind}`, () => {
    let database: TestDatabase;
    let server: ServerProcess;
    const kept = (name: string): string => readFileSync(join(database.data, name), 'utf8');
    const mode = (name: string): number => statSync(join(database.data, name)).mode & 0o777;

    before(async () => {
      database = await createTestDatabase(kind, { empty: true });
      server = await startServerProcess(database, { BERTH_ROOT_KEY: '' });
    });
    after(async () => {
      await server.stop();
      await database.drop();
    });

    test('prints where everything is, and of the root key where it is', async () => {
      assert.match(server.output(), /^berth is up at http:\/\/127\.0\.0\.1:\d+\n/);
      for (const address of ['/v2', '/v2/docs', '/v1', '/graphql', '/docs'])
        assert.ok(server.output().includes(server.url + address), address);
      assert.doesNotMatch(server.output(), /rpa_/);
      assert.match(server.output(), new RegExp(`root key  in ${join(database.data, 'root.key')}$`, 'm'));
      assert.equal((await server.client(kept('root.key').trim()).call('GET', '/v2/account')).status, 200);
    });

    test('keeps what is secret for its owner alone', () => {
      for (const name of ['root.key', 'master.key', 'server.json']) assert.equal(mode(name), 0o600, name);
      assert.doesNotMatch(server.log(), new RegExp(kept('root.key').trim()));
      assert.doesNotMatch(server.log(), new RegExp(kept('master.key').trim()));
    });

    test('writes a file with its address', () =>
      assert.deepEqual(JSON.parse(kept('server.json')), { url: server.url, pid: server.process.pid }));

    test('answers health checks without a key', async () => {
      const nobody = createApiClient(server.url, undefined);
      assert.deepEqual((await nobody.call('GET', '/healthz')).body, { status: 'ok' });
      assert.deepEqual((await nobody.call('GET', '/readyz')).body, { status: 'ready' });
      await nobody.call('GET', '/v2/templates/some-id');
      const metrics = await nobody.call('GET', '/metrics');
      assert.match(metrics.headers.get('content-type') ?? '', /^text\/plain/);
      assert.match(metrics.text, /^process_cpu_seconds_total /m);
      assert.match(
        metrics.text,
        /^berth_http_request_seconds_count\{method="GET",route="\/v2\/templates\/:id",status="401"\} 1$/m,
      );
      assert.doesNotMatch(metrics.text, /some-id/);
      for (const path of ['/healthz', '/readyz', '/metrics']) {
        const refused = await nobody.call('POST', path, {});
        assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET'], path);
      }
    });

    test('does not name its software to anonymous callers', async () => {
      const nobody = createApiClient(server.url, undefined);
      for (const path of ['/', '/unknown', '/v2', '/v1', '/.env', '/v2/accounts']) {
        const { headers, text } = await nobody.call('GET', path);
        assert.equal(headers.get('server') ?? headers.get('x-powered-by'), null);
        assert.doesNotMatch(text, /fastify|node_modules|\n {4}at /i);
      }
    });
  });

  describe(`stopping and starting again, on ${kind}`, () => {
    let database: TestDatabase;
    before(async () => {
      database = await createTestDatabase(kind, { empty: true });
    });
    after(() => database.drop());

    test('a request in progress is answered, then the program ends with 0 and removes server.json', async () => {
      const server = await startServerProcess(database);
      const answer = await halfSent(server, () => {
        server.process.kill('SIGTERM');
        return loggedLine(server, 'stopping');
      });
      assert.deepEqual([answer.status, answer.connection], [201, 'close']);
      assert.equal(JSON.parse(answer.text).name, 'under-way');
      assert.equal(await server.ended, 0);
      assert.ok(!existsSync(join(database.data, 'server.json')));
      assert.equal(parseLogLines(server).at(-1)?.['msg'], 'stopped');
    });

    test('a request that never ends does not keep it from ending', async () => {
      const server = await startServerProcess(database, { BERTH_STOP_TIMEOUT: '0' });
      const cut = halfSent(server, () => new Promise(() => undefined)).catch((error: Error) => error);
      assert.equal(await server.stop(), 0);
      assert.ok((await cut) instanceof Error);
    });

    test('stored data is there again, and instead of the root key only its path is shown', async () => {
      const server = await startServerProcess(database);
      assert.doesNotMatch(server.output(), /rpa_/);
      assert.match(server.output(), new RegExp(`^  root key  in ${join(database.data, 'root.key')}$`, 'm'));
      const { body } = await server.client().call<{ templates: { name: string }[] }>('GET', '/v2/templates');
      assert.deepEqual(
        body.templates.map(({ name }) => name),
        ['under-way'],
      );
      assert.equal(await server.stop(), 0);
    });

    test('another BERTH_ROOT_KEY replaces the root key, at once and for the command line too', async () => {
      const key = 'rpa_ANOTHERROOTKEYOFTHEOPERATOR';
      const server = await startServerProcess(database, { BERTH_ROOT_KEY: key });
      assert.equal((await server.client(key).call('GET', '/v2/accounts')).status, 200);
      assert.equal(
        (await server.client('rpa_TESTROOTKEYTESTROOTKEYTESTROOTKEY').call('GET', '/v2/accounts')).status,
        401,
      );
      assert.equal(readFileSync(join(database.data, 'root.key'), 'utf8'), `${key}\n`);
      assert.equal((await runBerth(['account', 'list', '--data', database.data])).code, 0);
      assert.equal(await server.stop(), 0);
      const again = await startServerProcess(database, { BERTH_ROOT_KEY: '' });
      assert.equal((await again.client(key).call('GET', '/v2/accounts')).status, 200);
      assert.equal(await again.stop(), 0);
    });

    test('another master key is refused before any harm, and says what to do', async () => {
      const refused = await runBerth(['up', '--port', '0', '--data', database.data], {
        BERTH_DATABASE_URL: database.url,
        BERTH_MASTER_KEY: 'ff'.repeat(32),
      });
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /sealed with another master key; set BERTH_MASTER_KEY/);
    });
  });
}

describe('two servers', () => {
  let database: TestDatabase;
  before(async () => {
    database = await createTestDatabase('sqlite');
  });
  after(() => database.drop());

  test('never share one data directory on SQLite; a killed one leaves no lock', async () => {
    const first = await startServerProcess(database);
    const second = await runBerth(['up', '--port', '0', '--data', database.data]);
    assert.equal(second.code, 1);
    assert.match(
      second.stderr,
      new RegExp(
        `^berth: another Berth server uses the data directory ${database.data} \\(process ` +
          `${first.process.pid}, ${first.url}\\); stop it, or give this one its own directory with ` +
          `--data\n$`,
      ),
    );
    assert.equal((await first.client().call('GET', '/readyz')).status, 200);
    await first.kill();
    const third = await startServerProcess(database);
    assert.equal((await third.client().call('GET', '/readyz')).status, 200);
    assert.equal(JSON.parse(readFileSync(join(database.data, 'server.json'), 'utf8')).pid, third.process.pid);
    assert.equal(await third.stop(), 0);
  });

  test('do not share a port', async () => {
    const first = await startServerProcess(database);
    const other = await createTestDatabase('sqlite');
    const second = await runBerth(['up', '--port', new URL(first.url).port, '--data', other.data]);
    assert.equal(second.code, 1);
    assert.equal(
      second.stderr,
      `berth: port ${new URL(first.url).port} of 127.0.0.1 is taken; choose another with --port or BERTH_PORT\n`,
    );
    await first.stop();
    await other.drop();
  });

  test('the one that found its port taken shows its root key once it is up, on a terminal', {
    skip: findPtyProgram() !== 'script',
  }, async () => {
    const first = await startServerProcess(database);
    const other = await createTestDatabase('sqlite');
    assert.equal((await runBerth(['up', '--port', new URL(first.url).port, '--data', other.data])).code, 1);
    const key = readFileSync(join(other.data, 'root.key'), 'utf8').trim();
    assert.equal(/root key {2}(rpa_\S+)/.exec(await outputOnTerminal(other.data))?.[1], key);
    assert.doesNotMatch(await outputOnTerminal(other.data), /rpa_/);
    assert.doesNotMatch(await outputOnTerminal(other.data, 'rpa_GIVENGIVENGIVENGIVEN'), /rpa_/);
    await first.stop();
    await other.drop();
  });
});

describe('/metrics at an address of its own', () => {
  let database: TestDatabase;
  let server: ServerProcess;
  before(async () => {
    database = await createTestDatabase('sqlite');
    const env = { BERTH_HOST: '0.0.0.0', BERTH_METRICS_LISTEN: '127.0.0.1:0' };
    server = await startServerProcess(database, env);
  });
  after(async () => {
    await server.stop();
    await database.drop();
  });
  const listener = (): URL => new URL(/^ {2}metrics {3}(\S+)$/m.exec(server.output())?.[1] ?? '');

  test('needs no key there, while the main address still asks for one', async () => {
    const nobody = createApiClient(server.url, undefined);
    assert.equal((await nobody.call('GET', '/metrics')).status, 401);
    assert.equal((await server.client().call('GET', '/metrics')).status, 200);
    const metrics = await fetch(listener());
    assert.match(metrics.headers.get('content-type') ?? '', /^text\/plain/);
    assert.match(await metrics.text(), /^berth_ready 1$/m);
  });

  test('serves nothing else there', async () => {
    const { origin } = listener();
    for (const path of ['/', '/v2/account', '/metrics/x'])
      assert.equal(
        (await fetch(origin + path, { headers: { authorization: `Bearer ${server.key}` } })).status,
        404,
        path,
      );
    const refused = await fetch(listener(), { method: 'POST', body: 'x' });
    assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET']);
  });

  test('an address that is taken stops the start, with the setting to change', async () => {
    const other = await createTestDatabase('sqlite');
    const refused = await runBerth(['up', '--port', '0', '--data', other.data], {
      BERTH_METRICS_LISTEN: listener().host,
    });
    assert.equal(refused.code, 1);
    assert.equal(
      refused.stderr,
      `berth: port ${listener().port} of 127.0.0.1 is taken; choose another with metrics.listen ` +
        `(BERTH_METRICS_LISTEN)\n`,
    );
    await other.drop();
  });
});

describe('two servers on PostgreSQL', () => {
  test('share one database: what one writes the other reads, with one root key', async () => {
    const database = await createTestDatabase('postgres', { empty: true });
    const elsewhere = await createTestDatabase('sqlite');
    const [one, other] = await Promise.all([
      startServerProcess(database),
      startServerProcess({ data: elsewhere.data, url: database.url }),
    ]);
    const made = await one.client().call<{ id: string }>('POST', '/v2/templates', {
      name: 'shared',
      image: 'a',
      env: { TOKEN: 'sealed' },
    });
    const seen = await other.client().call<{ env: object }>('GET', `/v2/templates/${made.body.id}`);
    assert.deepEqual(seen.body.env, { TOKEN: 'sealed' });
    assert.equal(await one.stop(), 0);
    assert.equal(await other.stop(), 0);
    await elsewhere.drop();
    await database.drop();
  });
});

/**
 * Sends the head and half the body of a request, waits for what `meanwhile` does, and then sends the rest.
 */
function halfSent(
  server: ServerProcess,
  meanwhile: () => Promise<unknown>,
): Promise<{ status: number; text: string; connection: string | undefined }> {
  const body = JSON.stringify({ name: 'under-way', image: 'python:3.12' });
  return new Promise((resolve, reject) => {
    const sending = request(`${server.url}/v2/templates`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${server.key}`,
        'content-type': 'application/json',
        'content-length': body.length,
        expect: '100-continue',
      },
    });
    sending.on('error', reject);
    sending.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text, connection: response.headers.connection }),
      );
      response.on('error', reject);
    });
    // The server says that it has read the head.
    sending.on('continue', () => {
      sending.write(body.slice(0, 10));
      meanwhile().then(() => sending.end(body.slice(10)), reject);
    });
    sending.flushHeaders();
  });
}

async function loggedLine(server: ServerProcess, words: string): Promise<void> {
  const { stderr } = server.process;
  while (!server.log().includes(words)) await new Promise((resolve) => stderr?.once('data', resolve));
}
