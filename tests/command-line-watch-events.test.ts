import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { BERTH_COMMAND } from '../packages/testing/src/berth-command.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

describe('berth ps --watch', () => {
  const fixture = serverFixture('sqlite', { BERTH_RATE_LIMITS: 'off' });
  const asked: string[] = [];
  let proxy: Server;
  before(async () => {
    proxy = createServer((incoming, answer) => {
      asked.push(`${incoming.method} ${incoming.url}`);
      const { method = 'GET', url = '/', headers } = incoming;
      const forwarded = request(`${fixture.server.url}${url}`, { method, headers }, (response) => {
        answer.writeHead(response.statusCode ?? 500, response.headers);
        response.pipe(answer);
      });
      answer.on('close', () => forwarded.destroy());
      forwarded.on('error', () => answer.destroy());
      incoming.pipe(forwarded);
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
  });
  after(() => {
    proxy.close();
    proxy.closeAllConnections();
  });

  test('shows what changes as the events tell it, without asking in between', async () => {
    const child = spawn(BERTH_COMMAND, ['ps', '--watch'], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        BERTH_URL: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
        BERTH_API_KEY: fixture.server.key,
      },
    });
    const ended = once(child, 'exit');
    try {
      let shown = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
      await waitFor('the first list', () => shown.includes('WAITING'));
      const endpoint = await createQueueEndpoint(fixture.server.url, fixture.server.key, { name: 'watched' });
      await waitFor('the new endpoint', () => shown.includes(endpoint.id));
      await endpoint.run();
      const row = (): string[] =>
        shown
          .split('\n')
          .findLast((line) => line.startsWith(endpoint.id))
          ?.trim()
          .split(/\s{2,}/) ?? [];
      await waitFor('the waiting job', () => row().includes('1'));
    } finally {
      child.kill('SIGINT');
      await ended;
    }
    // The stream comes first, so that nothing is missed, and is opened once.
    assert.equal(asked[0], 'GET /v2/events?types=endpoint%2Cworker%2Cjob');
    assert.equal(asked.filter((one) => one.includes('/v2/events')).length, 1);
  });
});
