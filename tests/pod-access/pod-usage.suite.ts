import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { getPod } from '../../packages/testing/src/pod-client.ts';
import type { PodAccessFixture } from '../../packages/testing/src/pod-access-fixture.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

const ATTEMPT_MS = 2_000;

interface OlderRuntime {
  uptimeInSeconds: number;
  container: { cpuPercent: number; memoryPercent: number };
  gpus: { gpuUtilPercent: number; memoryUtilPercent: number }[];
  ports: { privatePort: number; publicPort: number; isIpPublic: boolean; type: string; ip: string }[];
}

/** What a pod uses, and where its ports are. */
export function podUsageSuite(fixture: PodAccessFixture): void {
  describe('the use of a pod', () => {
    test('its usage is measured and reported in all three APIs; virtual GPUs show none', async () => {
      const hungry =
        'const kept = Buffer.alloc(400 * 1048576, 1); setInterval(() => { for (const end = Date.now() ' +
        '+ 45; Date.now() < end; ); }, 50); console.log(kept.length)';
      const id = await fixture.createPod({
        cpu: undefined,
        gpu: { id: 'NVIDIA GeForce RTX 4090' },
        cmd: ['node', '-e', hungry],
        ports: ['8000/http'],
      });
      const busy = await waitFor('its use shows', async () => {
        const { runtime } = await getPod(fixture.client(), id);
        return (
          runtime !== null && runtime.cpu.util > 0 && runtime.memory.util > 0 && runtime.uptime > 0 && runtime
        );
      });
      assert.ok(busy.cpu.util <= 100 && busy.memory.util < 50, JSON.stringify(busy));
      assert.deepEqual(busy.gpus, [{ util: 0, memoryUtil: 0 }]);
      const older = (
        await fixture.client().call<{ uptimeSeconds: number; runtime: OlderRuntime }>('GET', `/v1/pods/${id}`)
      ).body;
      assert.ok(
        older.uptimeSeconds > 0 &&
          older.runtime.container.cpuPercent > 0 &&
          older.runtime.container.memoryPercent > 0,
        JSON.stringify(older.runtime),
      );
      const { body } = await fixture.client().graphql<{ pod: { runtime: OlderRuntime } }>(
        `{ pod(input: { podId: "${id}" }) { runtime { uptimeInSeconds container { cpuPercent
            memoryPercent } gpus { gpuUtilPercent memoryUtilPercent } ports { privatePort } } } }`,
      );
      const runtime = body.data?.pod.runtime;
      assert.ok(
        runtime !== undefined && runtime.container.cpuPercent > 0 && runtime.uptimeInSeconds > 0,
        JSON.stringify(body),
      );
      assert.deepEqual(runtime.gpus, [{ gpuUtilPercent: 0, memoryUtilPercent: 0 }]);
    });

    test('a TCP port is where every interface says, and the pod is told the number', async () => {
      const script =
        'require("node:net").createServer((s) => ' +
        's.end(process.env.RUNPOD_TCP_PORT_22)).listen(process.env.LISTEN ?? 22)';
      // A port below 1024 may not be this user's to listen on, where pods share the machine.
      const id = await fixture.createPod({
        cmd: [
          'sh',
          '-c',
          `${fixture.sharesPorts ? 'export LISTEN=$RUNPOD_TCP_PORT_22; ' : ''}exec node -e '${script}'`,
        ],
        ports: ['22/tcp'],
      });
      const port = await waitFor('it is mapped', async () =>
        (await getPod(fixture.client(), id)).runtime?.ports.find(({ public: outside }) => outside !== null),
      );
      // The way in may be open before the pod listens.
      const answer = await waitFor(
        'the pod answers',
        async () => (await said(port.public ?? 0, port.ip ?? '')) || undefined,
      );
      assert.equal(answer, String(port.public));
      const { ssh } = (
        await fixture
          .client()
          .call<{ ssh: { direct: { host: string; port: number; username: string; command: string } } }>(
            'GET',
            `/v2/pods/${id}`,
          )
      ).body;
      assert.deepEqual(ssh.direct, {
        host: port.ip,
        port: port.public,
        username: 'root',
        command: `ssh root@${port.ip} -p ${port.public}`,
      });
      const older = (
        await fixture
          .client()
          .call<{ publicIp: string; portMappings: Record<string, number> }>('GET', `/v1/pods/${id}`)
      ).body;
      assert.deepEqual([older.publicIp, older.portMappings], [port.ip, { 22: port.public }]);
      const { body } = await fixture
        .client()
        .graphql<{ pod: { runtime: OlderRuntime } }>(
          `{ pod(input: { podId: "${id}" }) { runtime { ports { ip isIpPublic privatePort publicPort type } } } }`,
        );
      assert.deepEqual(body.data?.pod.runtime.ports, [
        { ip: port.ip, isIpPublic: true, privatePort: 22, publicPort: port.public, type: 'tcp' },
      ]);
    });
  });
}

/**
 * What a port says; nothing where nobody answers. An attempt that came too early may never be answered, so
 * each has its time.
 */
function said(port: number, host: string): Promise<string> {
  const socket = connect(port, host);
  socket.setTimeout(ATTEMPT_MS, () => socket.destroy());
  return text(socket).catch(() => '');
}
