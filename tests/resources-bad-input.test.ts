import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { before, describe, test } from 'node:test';
import { cpuSeconds } from '../bench/support/process-usage.ts';
import type { OpenApiDocument } from '../packages/cloud/src/http/rest/openapi.ts';
import type { ApiResponse, ApiClient } from '../packages/testing/src/api-client.ts';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { listAuditLog, serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { BAD_REQUESTS, LARGE, long, nested } from './resources/bad-requests.ts';

for (const kind of DATABASES) {
  describe(`bad input, on ${kind}`, () => {
    const fixture = serverFixture(kind, { BERTH_LOG_LEVEL: 'trace', BERTH_RATE_LIMITS: 'off' });
    let ann: TestAccount;
    let raw: ApiClient;
    let reader: ApiClient;
    before(async () => {
      ann = await fixture.createAccount('ann');
      raw = fixture.server.client(ann.key);
      const { body } = await ann.call<{ key: string }>('POST', '/v2/account/api-keys', {
        name: 'reader',
        access: 'READ_ONLY',
      });
      reader = fixture.server.client(body.key);
    });

    /**
     * Whatever is refused is refused in the shape of its interface, shows nothing of the inside, and has
     * changed nothing.
     */
    const refused = async (
      expected: number,
      path: string,
      call: () => Promise<ApiResponse>,
    ): Promise<ApiResponse> => {
      const log = await listAuditLog(ann);
      const answer = await call();
      const where = `${path.slice(0, 100)} answered ${answer.status} ${answer.text.slice(0, 300)}`;
      assert.equal(answer.status, expected, where);
      checkShape(path, answer, where);
      assert.deepEqual(await listAuditLog(ann), log, where);
      return answer;
    };

    for (const [title, { method = 'POST', path = '/templates', body, headers, expect }] of Object.entries(
      BAD_REQUESTS,
    )) {
      test(title, async () => {
        for (const [index, version] of (['/v1', '/v2'] as const).entries()) {
          const address = version + (typeof path === 'string' ? path : path[index]);
          await refused(expect[index] ?? 0, address, () => raw.call(method, address, body, headers));
        }
      });
    }

    test('100,000 levels, in a body that is not too large for v1', async () => {
      await refused(400, '/v1/templates', () => raw.call('POST', '/v1/templates', nested(100_000)));
      await refused(413, '/v2/templates', () => raw.call('POST', '/v2/templates', nested(100_000)));
      await refused(400, '/v2/templates', () => raw.call('POST', '/v2/templates', '['.repeat(100_000)));
    });

    test('50 MB in chunks of unknown total size: the refusal can be read, the connection goes on', async () => {
      for (const path of ['/v1/templates', '/v2/templates', '/v2/account/secrets', '/graphql']) {
        const log = await listAuditLog(ann);
        const answer = await inPieces(fixture.server.url, path, ann.key);
        assert.match(answer, /^HTTP\/1\.1 413 /, path);
        assert.match(answer, /larger than what is read here/, path);
        assert.match(
          answer,
          /HTTP\/1\.1 200 OK[^]*\{"status":"ok"\}$/,
          `${path}: the next request on the same connection`,
        );
        assert.deepEqual(await listAuditLog(ann), log);
      }
    });

    test('a volume that should shrink', async () => {
      const { body } = await ann.call<{ id: string }>('POST', '/v2/network-volumes', {
        name: 'a',
        size: 20,
        dataCenter: 'LOCAL-1',
      });
      await refused(400, '/v1/', () => raw.call('PATCH', `/v1/networkvolumes/${body.id}`, { size: 19 }));
      await refused(400, '/v2/', () => raw.call('PATCH', `/v2/network-volumes/${body.id}`, { size: 19 }));
      assert.equal((await ann.call<{ size: number }>('GET', `/v2/network-volumes/${body.id}`)).body.size, 20);
    });

    test('a key that may only read, on everything that writes', async () => {
      for (const [path, method] of operationsOf(
        fixture.contract,
        (operation, verb) => operation['x-berth-access'] === 'write' && verb !== 'get',
      )) {
        await refused(403, path, () => reader.call(method, path, method === 'DELETE' ? undefined : {}));
      }
    });

    test('no key and a wrong key, on everything that needs one', async () => {
      for (const [path, method] of operationsOf(
        fixture.contract,
        (operation) => operation['x-berth-access'] !== 'open',
      )) {
        for (const key of [undefined, 'rpa_wrong'])
          await refused(401, path, () =>
            fixture.client(key).call(method, path, method === 'GET' || method === 'DELETE' ? undefined : '{'),
          );
      }
    });

    test('a method that an address does not have, on every address: 405 with those that it has', async () => {
      for (const [version, document] of [
        ['/v1', fixture.contract.v1],
        ['/v2', fixture.contract.v2],
      ] as const) {
        for (const pattern of Object.keys(document.paths).filter(isResource)) {
          const path = (version === '/v1' ? version : '') + pattern.replaceAll(/\{\w+\}/g, 'some-id');
          const allowed = methodsOf(document, pattern);
          for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].filter(
            (verb) => !allowed.includes(verb),
          )) {
            const answer = await refused(405, path, () =>
              raw.call(method, path, method === 'GET' || method === 'OPTIONS' ? undefined : '{'),
            );
            assert.deepEqual(answer.headers.get('allow')?.split(', '), allowed, `${method} ${path}`);
          }
        }
      }
    });

    test('a number that is larger than any id of the audit log', async () => {
      for (const before of ['99999999999999999999', '-1', '0', 'x', '1.5'])
        await refused(422, '/v2/', () => raw.call('GET', `/v2/account/audit-log?before=${before}`));
      assert.equal(
        (await ann.call('GET', `/v2/account/audit-log?before=${Number.MAX_SAFE_INTEGER}`)).status,
        200,
      );
    });

    test('mistakes by the ten thousand are answered in a moment, with a few of them', async () => {
      const ports = Array.from({ length: 60_000 }, (_, index) => `${index}/udp`);
      const { pid = 0 } = fixture.server.process;
      const before = cpuSeconds(pid);
      const answer = await refused(400, '/v1/', () =>
        raw.call('POST', '/v1/templates', { name: 'a', imageName: 'b', ports }),
      );
      assert.ok(answer.text.length < 10_000 && cpuSeconds(pid) - before < 3);
    });

    test('GraphQL says no in its own way: 200 with errors, and nothing done', async () => {
      const log = await listAuditLog(ann);
      for (const body of [
        '{',
        '[]',
        '{"query":1}',
        '{}',
        { query: '{' },
        { query: '{ nothing }' },
        { query: 'mutation { saveTemplate(input: { name: 1 }) { id } }' },
        { query: 'mutation { saveTemplate(input: { name: "a" }) { id } }' },
        {
          query: 'mutation($v: String) { secretCreate(input: { name: $v, value: "x" }) { id } }',
          variables: { v: 'a\u0000b' },
        },
        { query: `{ myself ${'{ id '.repeat(500)}` },
      ]) {
        const {
          status,
          body: answer,
          text,
        } = await raw.call<{ errors?: { message: string }[]; data?: unknown }>('POST', '/graphql', body);
        assert.equal(status, 200, text);
        assert.ok((answer.errors?.[0]?.message ?? '') !== '', text);
        assert.doesNotMatch(text, /\n {4}at |node_modules|\.ts:/);
      }
      const byGet = await raw.call('GET', '/graphql?query={myself{id}}');
      assert.deepEqual([byGet.status, byGet.headers.get('allow')], [405, 'POST']);
      assert.deepEqual(await listAuditLog(ann), log);
    });

    test('invalid HTTP is refused, and the server continues', async () => {
      for (const bytes of [
        '\0\0\0\0',
        'GET\r\n\r\n',
        'GET /v2/templates HTTP/9.9\r\n\r\n',
        `GET / HTTP/1.1\r\nhost: x\r\n${long(200_000)}`,
        'GET /\0 HTTP/1.1\r\nhost: x\r\n\r\n',
        'POST /v2/templates HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      ]) {
        const answer = await exchange(fixture.server.url, [bytes]);
        assert.match(answer, /^HTTP\/1\.1 4\d\d /, bytes.slice(0, 40));
      }
      assert.equal((await ann.call('GET', '/v2/account')).status, 200);
    });

    test('an upgrade pipelined behind an unanswered request: each is answered, and the server goes on', async () => {
      for (const path of ['/v2/x/y', '/proxy/abc-80/', '/v2/x/job-channel/w']) {
        const answers = await exchange(fixture.server.url, [
          `GET /v2/pods HTTP/1.1\r\nhost: x\r\n\r\nGET ${path} HTTP/1.1\r\nhost: x\r\n` +
            `connection: Upgrade, close\r\nupgrade: something\r\n\r\n`,
        ]);
        assert.deepEqual(answers.match(/HTTP\/1\.1 \d+/g)?.length, 2, `${path}: ${answers}`);
      }
      assert.equal((await fetch(`${fixture.server.url}/healthz`)).status, 200);
    });

    test('no secret, password or key of all this is in the log, at its most talkative', async () => {
      const words = ['spoken-secret', 'spoken-password', 'spoken-environment', 'spoken-broken'];
      await ann.call('POST', '/v2/account/secrets', { name: 'a', value: words[0] });
      await ann.call('POST', '/v2/account/secrets', { name: 'a', value: words[0] });
      await ann.call('POST', '/v2/account/secrets', { name: '?', value: words[0] });
      await ann.call('POST', '/v2/registries', {
        name: 'a',
        username: 'a',
        password: words[1],
        unknown: words[1],
      });
      await ann.call('POST', '/v1/containerregistryauth', { name: 1, username: 'a', password: words[1] });
      await ann.call('POST', '/v2/templates', { name: 'a', image: 'b', env: { 'A=': words[2] } });
      await raw.call('POST', '/v2/account/secrets', `{"value":"${words[3]}`);
      await raw.call(
        'POST',
        `/graphql?api_key=${ann.key}`,
        { query: `mutation { secretCreate(input: { name: "b", value: "${words[0]}" }) { nothing } }` },
        { authorization: '' },
      );
      await raw.call('GET', `/v2/unknown?api_key=${ann.key}`);
      const log = fixture.server.log();
      assert.match(log, /"level":"debug"/);
      for (const word of [...words, ann.key, fixture.server.key]) assert.ok(!log.includes(word), word);
    });
  });
}

function checkShape(path: string, { status, headers, body, text }: ApiResponse, where: string): void {
  if (path.startsWith('/v1')) {
    assert.equal(headers.get('content-type'), 'application/json; charset=utf-8', where);
    assert.deepEqual(Object.keys(body as object), ['message'], where);
  } else {
    assert.equal(headers.get('content-type'), 'application/problem+json; charset=utf-8', where);
    const {
      title,
      status: said,
      detail,
      errors = [],
      ...more
    } = body as { title: string; status: number; detail: string; errors?: string[] };
    assert.ok(
      typeof title === 'string' &&
        said === status &&
        typeof detail === 'string' &&
        Object.keys(more).length === 0 &&
        errors.every((error) => typeof error === 'string'),
      where,
    );
    if (status === 422) assert.ok(errors.length > 0, where);
  }
  assert.ok((headers.get('x-request-id') ?? '') !== '', where);
  assert.doesNotMatch(text, /\n {4}at |node_modules|\.ts:|sqlite|postgres|FST_/i, where);
}

type Operations = OpenApiDocument['paths'][string][string];

/** The job API has its own order of checks and its own tests (tests/jobs-bad-input.test.ts). */
function isResource(pattern: string): boolean {
  return !pattern.startsWith('/v2/{endpointId}/');
}

/**
 * The addresses and methods of both interfaces that `wanted` picks, with an id in the place of each
 * parameter.
 */
function operationsOf(
  { v1, v2 }: { v1: OpenApiDocument; v2: OpenApiDocument },
  wanted: (operation: Operations, method: string) => boolean,
): [string, string][] {
  const of = (document: OpenApiDocument, prefix: string): [string, string][] =>
    Object.entries(document.paths).flatMap(([pattern, operations]) =>
      Object.entries(operations).flatMap(([method, operation]): [string, string][] =>
        isResource(pattern) && wanted(operation, method)
          ? [[prefix + pattern.replaceAll(/\{\w+\}/g, 'some-id'), method.toUpperCase()]]
          : [],
      ),
    );
  return [...of(v1, '/v1'), ...of(v2, '')];
}

/** The methods of an address: of its own pattern, and of one with a parameter that fits it too. */
function methodsOf(document: OpenApiDocument, path: string): string[] {
  const fits = (pattern: string): boolean => {
    const [wanted, given] = [pattern.split('/'), path.split('/')];
    return (
      wanted.length === given.length &&
      wanted.every((part, index) => part === given[index] || part.startsWith('{'))
    );
  };
  return [
    ...new Set(
      Object.entries(document.paths).flatMap(([pattern, operations]) =>
        isResource(pattern) && fits(pattern)
          ? Object.keys(operations).map((method) => method.toUpperCase())
          : [],
      ),
    ),
  ].sort();
}

/**
 * A body in pieces that is far too large, sent to its end before anything is read, and then another request
 * on the same connection.
 */
function inPieces(url: string, path: string, key: string): Promise<string> {
  const piece = `${(1_000_000).toString(16)}\r\n${long(1_000_000)}\r\n`;
  const head =
    `POST ${path} HTTP/1.1\r\nhost: berth\r\nauthorization: Bearer ${key}\r\n` +
    `content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`;
  return exchange(url, [
    head,
    ...Array.from({ length: LARGE / 1_000_000 }, () => piece),
    '0\r\n\r\n',
    'GET /healthz HTTP/1.1\r\nhost: berth\r\nconnection: close\r\n\r\n',
  ]);
}

/** Sends all of it, piece by piece, and answers all that came back until the server closed. */
function exchange(url: string, pieces: string[]): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) });
    let answer = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => (answer += chunk));
    socket.on('error', (error: NodeJS.ErrnoException) => (answer === '' ? reject(error) : resolve(answer)));
    socket.on('close', () => resolve(answer));
    const next = (index: number): void => {
      const piece = pieces[index];
      if (piece !== undefined) socket.write(piece, () => next(index + 1));
    };
    next(0);
  });
}
