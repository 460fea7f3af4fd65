import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { waitFor } from '../../../../../testing/src/wait-for.ts';
import { KubernetesClient } from './kubernetes-client.ts';
import { type KubernetesObject, ListWatch } from './list-watch.ts';

const object = (name: string, version: number): KubernetesObject => ({
  metadata: { name, uid: name, resourceVersion: String(version) },
});

describe('the list-watch loop', () => {
  let answer: (request: IncomingMessage, response: ServerResponse, isWatch: boolean) => void;
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    answer(request, response, (request.url ?? '').includes('watch=true'));
  });
  let client: KubernetesClient;
  before(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    client = new KubernetesClient(() =>
      Promise.resolve({
        server: url,
        namespace: undefined,
        credentials: () => Promise.resolve({ tls: {} }),
        forgetCredentials: () => undefined,
      }),
    );
  });
  after(() => {
    client.close();
    server.closeAllConnections();
    server.close();
  });

  function list(response: ServerResponse, names: string[], version = '5'): void {
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({ metadata: { resourceVersion: version }, items: names.map((name) => object(name, 1)) }),
    );
  }

  function follow(timing = {}) {
    requests.length = 0;
    const seen: string[] = [];
    const problems: string[] = [];
    const loop = new ListWatch<KubernetesObject>({
      client,
      path: '/pods',
      query: { labelSelector: 'a=b' },
      select: ({ metadata: { name, uid, resourceVersion } }) => ({
        metadata: {
          name: name.toUpperCase(),
          uid,
          ...(resourceVersion !== undefined && { resourceVersion }),
        },
      }),
      onList: async (objects) =>
        void seen.push(`list ${objects.map(({ metadata }) => metadata.name).join(',')}`),
      onChange: async (type, { metadata }) => void seen.push(`${type} ${metadata.name}`),
      onProblem: (what) => problems.push(what),
      timing: { minBackoffMs: 1, maxBackoffMs: 5, ...timing },
    });
    const sees = (what: string, times = 1): Promise<unknown> =>
      waitFor(what, async () => seen.filter((one) => one === what).length >= times);
    return { loop, seen, problems, sees };
  }

  test('lists, and watches from there', async () => {
    answer = (_, response, isWatch) => {
      if (!isWatch) return list(response, ['a']);
      response.write(`${JSON.stringify({ type: 'ADDED', object: object('b', 6) })}\n`);
      response.write(`${JSON.stringify({ type: 'BOOKMARK', object: object('', 7) })}\n`);
    };
    const { loop, seen, sees } = follow();
    await sees('ADDED B');
    assert.deepEqual(seen, ['list A', 'ADDED B']);
    assert.match(requests[1] ?? '', /resourceVersion=5/);
    assert.ok((loop.ageMs ?? Infinity) < 60_000);
    await loop.close();
  });

  test('begins anew when its version is too old, and goes on when a connection breaks', async () => {
    let watches = 0;
    answer = (_, response, isWatch) => {
      if (!isWatch) return list(response, ['a']);
      watches += 1;
      if (watches === 1) return response.destroy();
      if (watches === 2) {
        response.end(`${JSON.stringify({ type: 'MODIFIED', object: object('a', 8) })}\n`);
        return;
      }
      if (watches === 3)
        response.end(`${JSON.stringify({ type: 'ERROR', object: { code: 410, message: 'too old' } })}\n`);
    };
    const { loop, seen, sees } = follow();
    await sees('list A', 2);
    assert.deepEqual(seen, ['list A', 'MODIFIED A', 'list A']);
    assert.match(requests[3] ?? '', /resourceVersion=8/);
    await loop.close();
  });

  test('gives up a silent watch, waits when it is told to, and never ends', async () => {
    let lists = 0;
    answer = (_, response, isWatch) => {
      if (isWatch) return;
      lists += 1;
      if (lists === 2) {
        response.writeHead(429, { 'retry-after': '1' }).end('busy');
        return;
      }
      if (lists === 3) {
        response.writeHead(500).end('broken');
        return;
      }
      list(response, ['a']);
    };
    const { loop, sees, problems } = follow({ idleMs: 20 });
    await sees('list A', 2);
    assert.ok(problems.length >= 1);
    await loop.close();
  });
});
