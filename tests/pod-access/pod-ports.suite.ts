import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { describe, test } from 'node:test';
import { WebSocket } from 'ws';
import { podAction, createPod, waitForPodStatus } from '../../packages/testing/src/pod-client.ts';
import { POD_HTTP_SERVER_SOURCE } from '../../packages/testing/src/pod-http-server.ts';
import type { PodAccessFixture } from '../../packages/testing/src/pod-access-fixture.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

interface RequestEcho {
  method: string;
  url: string;
  headers: Record<string, string>;
  pod: string;
}

/** The HTTP ports of pods, through the gateway: by path and by host name. */
export function podPortsSuite(fixture: PodAccessFixture): void {
  describe('HTTP ports of a pod', () => {
    const served = async (more: Record<string, unknown> = {}): Promise<string> => {
      const id = await fixture.createPod({
        cmd: ['node', '-e', POD_HTTP_SERVER_SOURCE],
        ports: ['8000/http', '9000/tcp'],
        ...more,
      });
      await waitFor('it listens', async () => (await visit(id, '/')).status === 200);
      return id;
    };
    /** Without a key. */
    const visit = (id: string, path: string, options: RequestInit = {}, port = 8000): Promise<Response> =>
      fetch(`${fixture.server().url}/proxy/${id}-${port}${path}`, { redirect: 'manual', ...options });
    const about = async (response: Response): Promise<RequestEcho> => (await response.json()) as RequestEcho;

    test('a request goes through by path, without a key, and its prefix is cut off', async () => {
      const id = await served();
      const seen = await about(
        await visit(id, '/some/path?a=1&b=%2F', {
          method: 'PUT',
          body: 'x',
          headers: { authorization: 'Bearer its own', 'x-mine': 'yes' },
        }),
      );
      assert.partialDeepStrictEqual(seen, {
        method: 'PUT',
        url: '/some/path?a=1&b=%2F',
        pod: id,
        headers: {
          authorization: 'Bearer its own',
          'x-mine': 'yes',
          'x-forwarded-prefix': `/proxy/${id}-8000`,
          'x-forwarded-proto': 'http',
          'x-forwarded-host': new URL(fixture.server().url).host,
        },
      });
      const answer = await visit(id, '/');
      assert.equal(answer.headers.get('x-runpod-worker-id'), null);
      await answer.body?.cancel();
    });

    test('without a trailing slash it redirects; redirects and cookies of the pod stay below its address', async () => {
      const id = await served();
      const bare = await visit(id, '?a=1');
      assert.deepEqual([bare.status, bare.headers.get('location')], [308, `/proxy/${id}-8000/?a=1`]);
      assert.equal((await visit(id, '/moved')).headers.get('location'), `/proxy/${id}-8000/elsewhere`);
      assert.equal((await visit(id, '/cookie')).headers.get('set-cookie'), `a=1; Path=/proxy/${id}-8000/`);
    });

    test('an unknown pod or port is reported in a message', async () => {
      const id = await served();
      const refusal = async (response: Response): Promise<[number, string]> => [
        response.status,
        ((await response.json()) as { error: string }).error,
      ];
      assert.deepEqual(await refusal(await visit('nobody', '/')), [404, 'pod "nobody" not found']);
      assert.deepEqual(await refusal(await visit(id, '/', {}, 8001)), [
        404,
        `pod ${id} has no HTTP port 8001; it declares 8000`,
      ]);
      assert.deepEqual(await refusal(await visit(id, '/', {}, 9000)), [
        404,
        `pod ${id} has no HTTP port 9000; it declares 8000`,
      ]);
      assert.equal((await fetch(`${fixture.server().url}/proxy/${id}/`)).status, 404);
      assert.equal((await fetch(`${fixture.server().url}/proxy/`)).status, 404);
      const silent = await fixture.createPod({ ports: ['8000/http'] });
      assert.deepEqual(await refusal(await visit(silent, '/')), [
        502,
        `nothing listens on port 8000 of pod ${silent} yet`,
      ]);
      await podAction(fixture.client(), id, 'stop');
      await waitForPodStatus(fixture.client(), id, 'EXITED');
      assert.deepEqual(await refusal(await visit(id, '/')), [502, `pod ${id} does not run: it is EXITED`]);
      await fixture.client().call('DELETE', `/v2/pods/${id}`);
      assert.equal((await visit(id, '/')).status, 404);
    });

    test('bodies and events stream, both ways', async () => {
      const id = await served();
      const asking = request(`${fixture.server().url}/proxy/${id}-8000/back`, { method: 'POST' });
      asking.write('piece 0');
      const [answer] = (await once(asking, 'response')) as [IncomingMessage];
      for (let number = 0; number < 5; number += 1) {
        const [piece] = (await once(answer, 'data')) as [Buffer];
        assert.equal(String(piece), `piece ${number}`);
        if (number < 4) asking.write(`piece ${number + 1}`);
      }
      asking.end();
      const events = await visit(id, '/events');
      let text = '';
      for await (const chunk of events.body ?? [])
        if (((text += Buffer.from(chunk).toString()), /data: 3\n/.test(text))) break;
      assert.match(text, /^data: 1\n\ndata: 2\n\n/);
      const large = Buffer.alloc(40 * 1024 * 1024, 'y');
      const back = await visit(id, '/back', { method: 'POST', body: large });
      assert.equal((await back.arrayBuffer()).byteLength, large.length);
    });

    test('a WebSocket talks through', async () => {
      const id = await served();
      const socket = new WebSocket(
        `${fixture.server().url.replace(/^http/, 'ws')}/proxy/${id}-8000/chat?room=1`,
      );
      await once(socket, 'open');
      for (const word of ['hello', 'again']) {
        socket.send(word);
        const [data] = (await once(socket, 'message')) as [Buffer];
        assert.equal(String(data), `/chat?room=1: ${word}`);
      }
      socket.close();
      await once(socket, 'close');
      const refused = new WebSocket(`${fixture.server().url.replace(/^http/, 'ws')}/proxy/${id}-8001/`);
      const [, answer] = (await once(refused, 'unexpected-response')) as [unknown, IncomingMessage];
      assert.equal(answer.statusCode, 404);
    });

    test("by host name the whole path is the pod's, also one that looks like Berth's own", async () => {
      const id = await served();
      const { port } = new URL(fixture.server().url);
      const visited = async (path: string): Promise<RequestEcho> => {
        const asking = request({
          host: '127.0.0.1',
          port,
          path,
          headers: { host: `${id}-8000.pods.test:${port}` },
        }).end();
        const [answer] = (await once(asking, 'response')) as [IncomingMessage];
        return JSON.parse((await Array.fromAsync(answer as AsyncIterable<Buffer>)).join('')) as RequestEcho;
      };
      for (const path of ['/v2/pods', `/v2/${id}/run`, '/proxy/x-1/y', '/healthz'])
        assert.equal((await visited(path)).url, path);
      assert.equal((await visited('/')).headers['x-forwarded-prefix'], undefined);
    });

    test('a stopped pod that runs again is found again', async () => {
      const id = await served();
      await podAction(fixture.client(), id, 'restart');
      await waitFor('it is reached again', async () => {
        const answer = await visit(id, '/');
        await answer.body?.cancel();
        return (await waitForPodStatus(fixture.client(), id, 'RUNNING')) && answer.status === 200;
      });
    });

    if (fixture.sharesPorts) {
      test('a server may listen on the number that it is told, and two pods have the same port', async () => {
        const ids = [
          await served({ env: { LISTEN_AS: 'RUNPOD_TCP_PORT_8000' } }),
          await served({ env: { LISTEN_AS: 'BERTH_PORT_8000' } }),
        ];
        for (const id of ids) assert.equal((await about(await visit(id, '/'))).pod, id);
      });
    }

    test("a pod of another account is as public as one's own, and its management is not", async () => {
      const id = await served();
      assert.equal((await createPod(fixture.client('rpa_NOBODY'))).status, 401);
      assert.equal((await visit(id, '/')).status, 200);
    });
  });
}
