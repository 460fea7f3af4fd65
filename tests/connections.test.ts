import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const PER_ACCOUNT = 12;

describe('one account that opens connections', () => {
  let database: TestDatabase;
  let server: ServerProcess;
  let greedy: QueueEndpointClient;
  let other: QueueEndpointClient;
  const open: Socket[] = [];

  before(async () => {
    database = await createTestDatabase('sqlite');
    server = await startServerProcess(database, {
      BERTH_MAX_CONNECTIONS: '40',
      BERTH_MAX_CONNECTIONS_PER_ACCOUNT: String(PER_ACCOUNT),
    });
    [greedy, other] = [await createAccount('greedy'), await createAccount('other')];
  });
  after(async () => {
    for (const socket of open) socket.destroy();
    await server.stop();
    await database.drop();
  });

  async function createAccount(name: string): Promise<QueueEndpointClient> {
    const { body } = await server.client().call<{ key: string }>('POST', '/v2/accounts', { name });
    return createQueueEndpoint(server.url, body.key);
  }

  /** A connection with a request on it; with the begin of the answer, if it waits for one. */
  async function send(text: string, waits = true): Promise<{ socket: Socket; answer: string }> {
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname);
    open.push(socket);
    socket.on('error', () => socket.destroy());
    await once(socket, 'connect');
    socket.write(text);
    if (!waits) return { socket, answer: '' };
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    return { socket, answer: bytes.toString() };
  }

  const get = (path: string, key: string): string =>
    `GET ${path} HTTP/1.1\r\nhost: berth\r\nauthorization: Bearer ${key}\r\naccept: text/event-stream\r\n\r\n`;

  test('gets no more than its part: idle ones, streams and uploads count, and others are served', async () => {
    const { id, key } = greedy;
    const job = await greedy.run();
    // The connections of the client that this test has used so far are counted too, and end by themselves.
    const kinds: [string, boolean][] = [
      [get(`/v2/${id}/health`, key), true],
      [get('/v2/account', key), true],
      [get(`/v2/${id}/stream/${job}`, key), false],
      [
        `POST /v2/${id}/run HTTP/1.1\r\nhost: berth\r\nauthorization: Bearer ${key}\r\n` +
          `content-length: 1000000\r\n\r\n{`,
        false,
      ],
    ];
    for (let index = 0; index < 2 * PER_ACCOUNT; index += 1) {
      const [text, waits] = kinds[index % kinds.length] as [string, boolean];
      await send(text, waits);
    }
    const { socket, answer } = await send(get(`/v2/${id}/health`, key));
    assert.match(answer, /^HTTP\/1\.1 429 [\s\S]*12 of 12 are open[\s\S]*maxConnectionsPerAccount/);
    await once(socket, 'close');
    const rest = await send(get('/v2/account', key));
    assert.match(rest.answer, /^HTTP\/1\.1 429 [\s\S]*"limit":"maxConnectionsPerAccount"/);

    assert.match((await send(get(`/v2/${other.id}/health`, other.key))).answer, /^HTTP\/1\.1 200 /);
    for (const one of open.splice(0)) one.destroy();
    await waitFor('the account is served again', async () =>
      (await send(get(`/v2/${id}/health`, key))).answer.startsWith('HTTP/1.1 200 ') ? true : undefined,
    );
  });
});
