import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { podAction, waitForPodStatus, getPod } from '../../packages/testing/src/pod-client.ts';
import { listAuditLog } from '../../packages/testing/src/server-fixture.ts';
import type { PodAccessFixture } from '../../packages/testing/src/pod-access-fixture.ts';
import { openTerminal } from '../../packages/testing/src/terminal-client.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

/** What a pod finds in its environment, and what it may do with it. */
export function podSelfAccessSuite(fixture: PodAccessFixture): void {
  describe('a pod about itself', () => {
    const inside = async (id: string, script: string): Promise<string> => {
      const terminal = await openTerminal(
        `${fixture.server().url.replace(/^http/, 'ws')}/v2/pods/${id}/terminal?cmd=node&cmd=-e&cmd=${encodeURIComponent(script)}`,
        { authorization: `Bearer ${fixture.server().key}` },
      );
      await terminal.ended;
      assert.equal(terminal.stderr().toString(), '');
      return terminal.stdout().toString();
    };
    const environment = async (id: string): Promise<Record<string, string>> =>
      JSON.parse(await inside(id, 'console.log(JSON.stringify(process.env))')) as Record<string, string>;
    /** Asks Berth from inside, with the pod's own key. */
    const asks = async (
      id: string,
      variable: string,
      path: string,
      method = 'GET',
      body?: unknown,
    ): Promise<{ status: number; text: string }> => {
      const script =
        `fetch(process.env.${variable} + ${JSON.stringify(path)}, { method: '${method}', headers: { ` +
        `authorization: 'Bearer ' + process.env.RUNPOD_API_KEY, 'content-type': 'application/json' ` +
        `}, ${body === undefined ? '' : `body: ${JSON.stringify(JSON.stringify(body))}`} ` +
        '}).then(async (r) => console.log(JSON.stringify({ status: r.status, text: await r.text() ' +
        '})))';
      return JSON.parse(await inside(id, script)) as { status: number; text: string };
    };
    const graphql = (id: string, query: string): Promise<{ status: number; text: string }> =>
      asks(id, 'RUNPOD_GRAPHQL_URL', '', 'POST', { query });

    test("the variables of the reference are there, and a pod's own go over what is offered", async () => {
      const key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJlcnRoYmVydGhiZXJ0aGJlcnRoYmVydGhiZXJ0aGJl me@here';
      assert.equal((await fixture.client().call('PUT', '/v2/account/ssh-keys', { keys: [key] })).status, 200);
      const volume = (
        await fixture.client().call<{ id: string }>('POST', '/v2/network-volumes', {
          name: 'shared',
          size: 10,
          dataCenter: fixture.dataCenterId,
        })
      ).body.id;
      const id = await fixture.createPod({
        startSsh: true,
        startJupyter: true,
        ports: ['8000/http', '22/tcp', '70001/tcp'],
        mounts: { network: [{ volumeId: volume, path: '/shared' }] },
      });
      const env = await environment(id);
      assert.partialDeepStrictEqual(env, {
        RUNPOD_POD_ID: id,
        RUNPOD_POD_HOSTNAME: id,
        RUNPOD_DC_ID: fixture.dataCenterId,
        RUNPOD_GPU_COUNT: '0',
        RUNPOD_CPU_COUNT: '2',
        RUNPOD_PUBLIC_IP: '127.0.0.1',
        RUNPOD_VOLUME_ID: volume,
        PUBLIC_KEY: key,
      });
      assert.match(env['JUPYTER_PASSWORD'] ?? '', /^[\w-]{24}$/);
      assert.match(env['RUNPOD_API_KEY'] ?? '', new RegExp(`^rpp_${id}_`));
      for (const port of [22, 70001])
        assert.match(env[`RUNPOD_TCP_PORT_${port}`] ?? '', /^\d+$/, String(port));
      const own = await environment(
        await fixture.createPod({
          startSsh: true,
          env: { RUNPOD_API_KEY: 'mine', SSH_PUBLIC_KEY: 'another key', RUNPOD_POD_ID: 'not this' },
        }),
      );
      assert.partialDeepStrictEqual(own, { RUNPOD_API_KEY: 'mine', PUBLIC_KEY: 'another key' });
      assert.notEqual(own['RUNPOD_POD_ID'], 'not this');
      await fixture.client().call('PUT', '/v2/account/ssh-keys', { keys: [] });
    });

    test('its own key opens itself in all three interfaces, and nothing else', async () => {
      const [id, other] = [await fixture.createPod(), await fixture.createPod()];
      const seen = await asks(id, 'RUNPOD_REST_V2_URL', `/pods/${id}`);
      assert.equal(seen.status, 200, seen.text);
      assert.equal((JSON.parse(seen.text) as { id: string }).id, id);
      assert.equal((await asks(id, 'RUNPOD_API_URL', `/pods/${id}`)).status, 200);
      assert.deepEqual(JSON.parse((await graphql(id, `{ pod(input: { podId: "${id}" }) { id } }`)).text), {
        data: { pod: { id } },
      });
      for (const path of [
        '/pods',
        `/pods/${other}`,
        '/templates',
        '/account/api-keys',
        '/account/ssh-keys',
        '/serverless',
        '/account/secrets',
      ]) {
        const { status, text } = await asks(id, 'RUNPOD_REST_V2_URL', path);
        assert.ok(status === 403 || status === 404, `${path}: ${status} ${text}`);
      }
      assert.equal((await asks(id, 'RUNPOD_REST_V2_URL', `/pods/${id}`, 'PATCH', { name: 'x' })).status, 403);
      assert.equal((await asks(id, 'RUNPOD_REST_V2_URL', '/pods', 'POST', {})).status, 403);
      assert.equal(
        (await asks(id, 'RUNPOD_REST_V2_URL', `/pods/${other}/action`, 'POST', { action: 'stop' })).status,
        403,
      );
      assert.equal((await asks(id, 'RUNPOD_API_URL', `/pods/${other}/stop`, 'POST')).status, 403);
      for (const query of [
        `{ pod(input: { podId: "${other}" }) { id } }`,
        `mutation { podTerminate(input: { podId: "${other}" }) }`,
        '{ myself { id pubKey } }',
        '{ a: myself { id } pod(input: { podId: "x" }) { id } }',
        'mutation { secretCreate(input: { name: "a", value: "b" }) { id } }',
      ]) {
        // `myself` is for anybody, and says nothing to a pod.
        assert.match((await graphql(id, query)).text, /access denied|"errors"|"myself":null/, query);
        assert.doesNotMatch((await graphql(id, query)).text, /"(?:id|pubKey)":"/, query);
      }
      assert.equal((await getPod(fixture.client(), other)).status, 'RUNNING');
      const { RUNPOD_API_KEY: token = '' } = await environment(id);
      for (const [method, path] of [
        ['GET', '/v2/x/health'],
        ['GET', `/v2/pods/${id}/terminal`],
        ['POST', '/v2/x/run'],
      ] as const) {
        const { status } = await fixture.client(token).call(method, path);
        assert.ok(status >= 400, `${path}: ${status}`);
      }
      assert.equal(
        (
          await fixture
            .client(`${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`)
            .call('GET', `/v2/pods/${id}`)
        ).status,
        401,
      );
    });

    test('it can stop, restart and terminate itself; after its end its key opens nothing', async () => {
      const id = await fixture.createPod();
      const { RUNPOD_API_KEY: token = '' } = await environment(id);
      const itself = fixture.client(token);
      assert.equal((await itself.call('POST', `/v1/pods/${id}/restart`)).status, 200);
      await waitForPodStatus(fixture.client(), id, 'RUNNING');
      const script =
        `fetch(process.env.RUNPOD_GRAPHQL_URL, { method: 'POST', headers: { authorization: 'Bearer ' ` +
        `+ process.env.RUNPOD_API_KEY }, body: JSON.stringify({ query: 'mutation { podStop(input: { ` +
        `podId: "${id}" }) { id } }' }) })`;
      const stopping = await waitFor('it runs anew', async () =>
        openTerminal(
          `${fixture.server().url.replace(/^http/, 'ws')}/v2/pods/${id}/terminal?cmd=node&cmd=-e&cmd=${encodeURIComponent(script)}`,
          { authorization: `Bearer ${fixture.server().key}` },
        ).catch(() => undefined),
      );
      await stopping.ended;
      await waitForPodStatus(fixture.client(), id, 'EXITED');
      assert.ok(
        (await listAuditLog(fixture.client())).some(
          (entry) => entry['action'] === 'stop' && entry['keyId'] === `pod:${id}`,
        ),
      );
      assert.equal((await itself.call('POST', `/v2/pods/${id}/action`, { action: 'start' })).status, 200);
      await waitForPodStatus(fixture.client(), id, 'RUNNING');
      assert.equal((await itself.call('DELETE', `/v2/pods/${id}`)).status, 204);
      assert.equal((await itself.call('GET', `/v2/pods/${id}`)).status, 401);
      assert.equal((await podAction(itself, id, 'start')).status, 401);
    });
  });
}
