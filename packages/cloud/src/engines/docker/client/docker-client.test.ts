import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type Duplex, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, before, describe, mock, test } from 'node:test';
import { DockerClient } from './docker-client.ts';
import { daemonStatus, toDockerError } from './docker.errors.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A daemon that answers as a test says. */
class FakeDaemon {
  readonly server: Server = createServer((request, response) => this.answer(request, response));
  answer: Answer = (_, response) => response.end();
  connections = 0;

  constructor() {
    this.server.on('connection', () => (this.connections += 1));
  }

  async open(path?: string): Promise<string> {
    await once(
      path === undefined ? this.server.listen(0, '127.0.0.1') : this.server.listen(path),
      'listening',
    );
    return path === undefined
      ? `tcp://127.0.0.1:${(this.server.address() as AddressInfo).port}`
      : `unix://${path}`;
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

describe('the Docker client', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-docker-client-'));
  const daemon = new FakeDaemon();
  let client: DockerClient;
  before(async () => {
    client = new DockerClient(await daemon.open(join(folder, 'docker.sock')));
  });
  after(() => {
    client.close();
    daemon.close();
    rmSync(folder, { recursive: true });
  });

  test('queries hold text, lists and objects, and leave out what is undefined', async () => {
    daemon.answer = ({ url }, response) => response.end(JSON.stringify([url]));
    const query = { all: true, filters: { label: ['a=b c'] }, changes: ['CMD x', 'ENV y'], tail: undefined };
    const [url = ''] = await client.get<string[]>('/containers/json', query);
    const { pathname, searchParams } = new URL(url, 'http://docker');
    assert.equal(pathname, '/containers/json');
    assert.deepEqual(
      [...searchParams],
      [
        ['all', 'true'],
        ['filters', '{"label":["a=b c"]}'],
        ['changes', 'CMD x'],
        ['changes', 'ENV y'],
      ],
    );
  });

  test('bodies are JSON, and an empty answer is undefined', async () => {
    let [type, body]: unknown[] = [];
    daemon.answer = async (request, response) => {
      [type, body] = [request.headers['content-type'], JSON.parse(await text(request))];
      response.writeHead(204).end();
    };
    assert.equal(await client.post('/networks/create', { body: { Name: 'n' } }), undefined);
    assert.deepEqual([type, body], ['application/json', { Name: 'n' }]);
  });

  test('one connection serves requests that follow each other, a stream has its own', async () => {
    daemon.answer = ({ url }, response) => {
      if (url === '/events') response.write('{}\n');
      else response.end('{}');
    };
    daemon.connections = 0;
    for (let count = 0; count < 3; count += 1) await client.get('/info');
    assert.ok(daemon.connections <= 1);
    const stop = new AbortController();
    const events = await client.stream('GET', '/events', { signal: stop.signal });
    await client.get('/info');
    assert.ok(daemon.connections <= 2);
    stop.abort();
    await assert.rejects(text(events));
  });

  test('refusals carry the status and the message, whoever wrote it', async () => {
    const refusals: [status: number, body: string, message: string][] = [
      [404, '{"message":"No such container: x"}\n', 'No such container: x'],
      [500, '{"cause":"c","message":"state improper","response":500}', 'state improper'],
      [409, 'plain text', 'plain text'],
      [502, '', 'HTTP 502 Bad Gateway'],
    ];
    for (const [status, body, message] of refusals) {
      daemon.answer = (_, response) => response.writeHead(status).end(body);
      await assert.rejects(client.get('/x'), { status, message });
      await assert.rejects(client.stream('GET', '/x'), { status, message });
      await assert.rejects(client.upgrade('/x', {}), { status, message });
    }
    daemon.answer = (_, response) => response.writeHead(404).end();
    await assert.rejects(client.head('/x'), { status: 404 });
    // Done already.
    daemon.answer = (_, response) => response.writeHead(304).end();
    await assert.rejects(client.post('/x'), { status: 304 });
  });

  test('an upload is sent as it comes, and one that is refused is not read on', async () => {
    let received = '';
    daemon.answer = async (request, response) => {
      received = await text(request);
      response.end();
    };
    (await client.stream('PUT', '/archive', { upload: Readable.from(['a', 'b']) })).resume();
    assert.equal(received, 'ab');
    daemon.answer = (_, response) => response.writeHead(404).end('{"message":"no such folder"}');
    const endless = new Readable({ read: () => undefined });
    endless.push('begin');
    await assert.rejects(client.stream('PUT', '/archive', { upload: endless }), {
      status: 404,
      message: 'no such folder',
    });
    assert.equal(endless.destroyed, false);
    assert.equal(endless.listenerCount('data'), 0);
    const failing = new Readable({ read: () => failing.destroy(new Error('the sender is gone')) });
    await assert.rejects(client.stream('PUT', '/archive', { upload: failing }), /the sender is gone/);
  });

  test('an upgraded connection carries bytes both ways, also after one side has ended', async () => {
    daemon.server.once('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      assert.equal(request.headers.upgrade, 'tcp');
      // The first bytes come with the answer.
      socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nready ');
      socket.unshift(head);
      void text(socket).then((all) => socket.end(`got ${all.slice(all.indexOf('}') + 1)}`));
    });
    const connection = await client.upgrade('/exec/1/start', { Tty: false });
    connection.end('hello');
    assert.equal(await text(connection), 'ready got hello');
  });

  test('a broken connection is an error without a status, which may be retried', async () => {
    const answers: Answer[] = [
      (request) => request.socket.destroy(),
      (request, response) => {
        response.writeHead(200, { 'content-length': 100 }).write('{"half":');
        setImmediate(() => request.socket.destroy());
      },
    ];
    for (const answer of answers) {
      daemon.answer = answer;
      const error = await client.get('/info').catch((reason: unknown) => reason);
      assert.equal(daemonStatus(error), undefined);
      assert.equal(toDockerError(error).code, 'unavailable');
    }
    daemon.answer = (request) => request.socket.destroy();
    await assert.rejects(client.upgrade('/exec/1/start', {}));
    const [, breaksOff] = answers;
    daemon.answer = breaksOff as Answer;
    await assert.rejects(text(await client.stream('GET', '/logs')));
    await assert.rejects(new DockerClient(`unix://${folder}/absent.sock`).get('/info'), /ENOENT/);
  });

  test('a signal ends a request and a stream', async () => {
    const stop = new AbortController();
    daemon.answer = () => stop.abort();
    await assert.rejects(client.wait('/wait', {}, stop.signal), { name: 'AbortError' });
    await assert.rejects(client.stream('GET', '/events', { signal: stop.signal }), { name: 'AbortError' });
  });

  test('a daemon that hangs is given up, a wait and a stream are not', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const held: ServerResponse[] = [];
      const arrived = Promise.withResolvers<void>();
      daemon.answer = (_, response) => {
        if (held.push(response) === 4) arrived.resolve();
      };
      const waiting = client.wait('/wait');
      const streaming = client.stream('GET', '/events');
      const refused = [
        assert.rejects(client.get('/info'), /no answer within 120 s/),
        assert.rejects(client.upgrade('/exec/1/start', {}), /no answer within 120 s/),
      ];
      // The server gives an upgrade to its request handler while nobody listens for upgrades.
      await arrived.promise;
      mock.timers.tick(120_000);
      await Promise.all(refused);
      for (const response of held) response.end('{"StatusCode":0}');
      assert.deepEqual(await waiting, { StatusCode: 0 });
      assert.equal(await text(await streaming), '{"StatusCode":0}');
    } finally {
      mock.timers.reset();
    }
  });

  test('an address of ssh is reached through the program ssh', async (context) => {
    const bin = join(folder, 'bin');
    const program = `#!${process.execPath}
const { appendFileSync } = require('node:fs');
appendFileSync(${JSON.stringify(join(folder, 'arguments'))}, process.argv.slice(2).join(' ') + '\\n');
if (process.argv.includes('nowhere')) { console.error('ssh: no route to nowhere'); process.exit(255); }
const socket = require('node:net').connect(${JSON.stringify(join(folder, 'docker.sock'))});
process.stdin.pipe(socket).pipe(process.stdout);
socket.on('close', () => process.exit(0));
`;
    mkdirSync(bin);
    writeFileSync(join(bin, 'ssh'), program);
    chmodSync(join(bin, 'ssh'), 0o700);
    const path = process.env['PATH'];
    process.env['PATH'] = `${bin}${delimiter}${path}`;
    context.after(() => (process.env['PATH'] = path));
    daemon.answer = async (request, response) => response.end(JSON.stringify({ got: await text(request) }));
    const remote = new DockerClient('ssh://ann@far:2222');
    assert.deepEqual(await remote.post('/x', { body: { a: 1 } }), { got: '{"a":1}' });
    assert.match(
      readFileSync(join(folder, 'arguments'), 'utf8'),
      /^-T .*-l ann -p 2222 -- far docker system dial-stdio\n$/,
    );
    await assert.rejects(new DockerClient('ssh://nowhere').get('/info'), /no route to nowhere/);
  });
});
