import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { createTestCertificate, type TestCertificate } from '../../../../../testing/src/test-certificate.ts';
import { waitFor } from '../../../../../testing/src/wait-for.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { KubernetesClient } from './kubernetes-client.ts';
import { KubernetesApiError } from './kubernetes.errors.ts';

const STREAMS = 25;
const ALLOWED = 10;
const WHOLE_BYTES = 1_000_000;

describe('streams that share connections', () => {
  let certificate: TestCertificate;
  let server: Http2SecureServer;
  let client: KubernetesClient;
  let token = 'first';
  const sessions = new Set<ServerHttp2Session>();
  let open = 0;
  before(async () => {
    certificate = createTestCertificate();
    server = createSecureServer({
      key: certificate.key,
      cert: certificate.certificate,
      settings: { maxConcurrentStreams: ALLOWED },
    });
    server.on('session', (session) => {
      sessions.add(session);
      session.on('error', () => undefined).once('close', () => sessions.delete(session));
    });
    server.on('stream', (stream, headers) => {
      open += 1;
      stream.on('error', () => undefined).once('close', () => (open -= 1));
      if (headers.authorization !== `Bearer ${token}`)
        return void stream.respond({ ':status': 401 }, { endStream: true });
      if (headers[':path'] === '/absent') {
        stream.respond({ ':status': 404, 'content-type': 'application/json' });
        return void stream.end('{"reason":"NotFound","message":"there is no such pod"}');
      }
      stream.respond({ ':status': 200 });
      if (headers[':path'] === '/whole') return void stream.end('x'.repeat(WHOLE_BYTES));
      stream.write(`${headers[':path']}\n`);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  after(() => server.close());
  afterEach(() => client.close());

  /** Reads the credentials again whenever they are forgotten. */
  function clientOf(address: AddressInfo): KubernetesClient {
    let given = 'first';
    const access: ClusterAccess = {
      server: `https://127.0.0.1:${address.port}`,
      namespace: undefined,
      credentials: () =>
        Promise.resolve({ authorization: `Bearer ${given}`, tls: { ca: certificate.certificate } }),
      forgetCredentials: () => (given = token),
    };
    return new KubernetesClient(() => Promise.resolve(access));
  }

  async function follow(path: string, signal: AbortSignal): Promise<AsyncIterator<Buffer>> {
    return (await client.sharedStream(path, {}, signal))[Symbol.asyncIterator]();
  }

  test('take no more connections than the server allows streams on each', async () => {
    client = clientOf(server.address() as AddressInfo);
    const closing = new AbortController();
    const all = await Promise.all(
      Array.from({ length: STREAMS }, (_, index) => follow(`/${index}`, closing.signal)),
    );
    const first = await Promise.all(all.map((one) => one.next()));
    assert.deepEqual(
      first.map(({ value }) => String(value)),
      all.map((_, index) => `/${index}\n`),
    );
    assert.ok(first.every(({ value }) => value?.buffer.byteLength === value?.length));
    assert.equal(sessions.size, Math.ceil(STREAMS / ALLOWED));
    closing.abort();
    await Promise.all(all.map((one) => assert.rejects(one.next(), /abort/)));
    await waitFor('the streams are closed', async () => open === 0);
    // What has ended makes room.
    const again = await follow('/again', new AbortController().signal);
    assert.equal(String((await again.next()).value), '/again\n');
    assert.equal(sessions.size, Math.ceil(STREAMS / ALLOWED));
    await again.return?.();
  });

  test('that break off say so, and later ones have a new connection', async () => {
    client = clientOf(server.address() as AddressInfo);
    const { signal } = new AbortController();
    const broken = await follow('/one', signal);
    await broken.next();
    for (const session of sessions) session.destroy();
    await assert.rejects(broken.next());
    await waitFor('the connection is closed', async () => sessions.size === 0);
    const next = await follow('/two', signal);
    assert.equal(String((await next.next()).value), '/two\n');
  });

  test('are read to their end', async () => {
    client = clientOf(server.address() as AddressInfo);
    const chunks = await Array.fromAsync(
      await client.sharedStream('/whole', {}, new AbortController().signal),
    );
    assert.equal(Buffer.concat(chunks).length, WHOLE_BYTES);
    // A chunk keeps nothing else in memory: the last one is kept until the next one comes.
    assert.ok(chunks.every((chunk) => chunk.buffer.byteLength === chunk.length));
  });

  test('tell refusals, and read refused credentials again', async () => {
    client = clientOf(server.address() as AddressInfo);
    const { signal } = new AbortController();
    await assert.rejects(
      client.sharedStream('/absent', {}, signal),
      (error) =>
        error instanceof KubernetesApiError && error.status === 404 && /no such pod/.test(error.message),
    );
    token = 'second';
    const stream = await follow('/one', signal);
    assert.equal(String((await stream.next()).value), '/one\n');
    token = 'first';
  });

  test('have connections of their own where there is no HTTP/2', async () => {
    const plain = createServer({ key: certificate.key, cert: certificate.certificate }, (request, response) =>
      response.end(`HTTP/${request.httpVersion} ${request.url}`),
    );
    await once(plain.listen(0, '127.0.0.1'), 'listening');
    try {
      client = clientOf(plain.address() as AddressInfo);
      const { signal } = new AbortController();
      for (const path of ['/one', '/two']) {
        const stream = await follow(path, signal);
        assert.equal(String((await stream.next()).value), `HTTP/1.1 ${path}`);
      }
    } finally {
      plain.closeAllConnections();
      plain.close();
    }
  });
});
