import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { goProgram } from '../support/go-client.mjs';
import { clientFixture } from '../../packages/testing/src/client-fixture.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { documentationCode, documentedVariables } from '../support/documentation-code.ts';

interface Thing extends Record<string, unknown> {
  id: string;
  name: string;
}

interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
}

const GPU = 'NVIDIA GeForce RTX 4090';
/** An image that stays: a template gives the command, since pods are made here without one. */
const STAYS = {
  name: 'stays',
  image: 'local/shell',
  cmd: ['sleep', '1000'],
  startSsh: false,
  startJupyter: false,
};

/** Every command that talks to the interface. */
export function runpodctlSuite(installed: string): void {
  const program = goProgram(installed, 'runpodctl');
  const isInstalled = existsSync(program);
  // Newer releases moved most of it to REST v2, and can read logs and run jobs.
  const speaksV2 =
    isInstalled && /^ +logs /m.test(execFileSync(program, ['pod', '--help'], { encoding: 'utf8' }));
  describe(installed, { skip: isInstalled ? false : `${installed} is not installed` }, () => {
    const fixture = clientFixture();
    let home: string;
    before(() => {
      home = mkdtempSync(join(tmpdir(), 'berth-runpodctl-'));
    });
    after(() => rmSync(home, { recursive: true, force: true }));

    const run = async (...args: string[]): Promise<Ran> => {
      const { url, key } = fixture.server;
      const env = {
        PATH: process.env['PATH'],
        HOME: home,
        ...documentedVariables('runpodctl.md', 0, { url, key }),
      };
      const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
      const ran: Ran = { code: null, stdout: '', stderr: '' };
      child.stdout.setEncoding('utf8').on('data', (text: string) => (ran.stdout += text));
      child.stderr.setEncoding('utf8').on('data', (text: string) => (ran.stderr += text));
      [ran.code] = (await once(child, 'close')) as [number | null];
      return ran;
    };
    test('works as its page says', async () => {
      const { url, key } = fixture.server;
      const block = documentationCode('runpodctl.md', 'sh', 0, { url, key });
      const env = { PATH: `${dirname(program)}:${process.env['PATH']}`, HOME: home };
      const script = block.replace('$(cat .berth/root.key)', key);
      execFileSync('bash', ['--norc', '-ec', script], { env, encoding: 'utf8' });
    });

    const ok = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await run(...args);
      assert.equal(code, 0, `runpodctl ${args.join(' ')}: ${stderr}${stdout}`);
      return stdout;
    };
    const json = async <T = Thing>(...args: string[]): Promise<T> => JSON.parse(await ok(...args)) as T;
    const ids = (things: Thing[]): string[] => things.map(({ id }) => id);
    const template = async (): Promise<string> =>
      (
        await fixture.client.call<Thing>('POST', '/v2/templates', {
          ...STAYS,
          name: `stays ${Math.random()}`,
        })
      ).body.id;

    test('gpu list, datacenter list and user', async () => {
      assert.ok((await ok('gpu', 'list')).includes(GPU));
      assert.ok((await ok('datacenter', 'list')).includes('LOCAL-1'));
      assert.match(await ok('user'), /root/);
    });

    test('a pod: create, list, get, update, stop, start, restart, reset, delete', async () => {
      const pod = await json(
        'pod',
        'create',
        '--name',
        'ctl',
        '--template-id',
        await template(),
        '--gpu-id',
        GPU,
        '--ports',
        '8888/http,22/tcp',
        '--env',
        '{"A":"b"}',
        '--ssh=false',
      );
      await waitFor(
        'the pod runs',
        async () => (await fixture.client.call('GET', `/v2/pods/${pod.id}`)).body['status'] === 'RUNNING',
      );
      assert.ok(ids(await json<Thing[]>('pod', 'list')).includes(pod.id));
      assert.equal((await json('pod', 'get', pod.id)).id, pod.id);
      await ok('pod', 'update', pod.id, '--name', 'renamed');
      await ok('pod', 'stop', pod.id);
      assert.ok(ids(await json<Thing[]>('pod', 'list', '--all')).includes(pod.id));
      await ok('pod', 'start', pod.id);
      await waitFor(
        'the pod runs again',
        async () => (await fixture.client.call('GET', `/v2/pods/${pod.id}`)).body['status'] === 'RUNNING',
      );
      await ok('pod', 'restart', pod.id);
      if (!speaksV2) await ok('pod', 'reset', pod.id);
      if (speaksV2) assert.match(await ok('pod', 'logs', pod.id, '--source', 'system'), /"source":"system"/);
      await ok('ssh', 'info', pod.id);
      await ok('pod', 'delete', pod.id);
      assert.notEqual((await run('pod', 'get', pod.id)).code, 0);
    });

    test('a pod without a GPU', async () => {
      const pod = await json(
        'pod',
        'create',
        '--compute-type',
        'cpu',
        '--name',
        'cpu',
        '--image',
        'local/shell',
      );
      await ok('pod', 'delete', pod.id);
    });

    test('an endpoint: create, list, get, update, delete', async () => {
      const made = await json(
        'template',
        'create',
        '--name',
        `worker ${speaksV2}`,
        '--image',
        'local/echo',
        '--serverless',
      );
      const endpoint = await json(
        'serverless',
        'create',
        '--name',
        'ctl',
        '--template-id',
        made.id,
        '--gpu-id',
        GPU,
        '--workers-min',
        '0',
        '--workers-max',
        '1',
      );
      assert.ok(ids(await json<Thing[]>('serverless', 'list')).includes(endpoint.id));
      await ok(
        'serverless',
        'update',
        endpoint.id,
        '--name',
        'renamed',
        '--workers-max',
        '2',
        '--idle-timeout',
        '30',
      );
      assert.equal((await json('serverless', 'get', endpoint.id)).name.replace(/ -fb$/, ''), 'renamed');
      if (speaksV2) {
        assert.match(
          await ok('serverless', 'run', endpoint.id, '--input', '{"say":"hello"}'),
          /"say": ?"hello"/,
        );
        await ok('serverless', 'health', endpoint.id);
      }
      await ok('serverless', 'delete', endpoint.id);
    });

    test('templates: create, list, search, get, update, delete', async () => {
      const made = await json(
        'template',
        'create',
        '--name',
        `ctl ${speaksV2}`,
        '--image',
        'a:1',
        '--docker-start-cmd',
        'run,it',
        '--env',
        '{"A":"b"}',
        '--ports',
        '80/http',
        '--readme',
        'hello',
      );
      assert.ok(ids(await json<Thing[]>('template', 'list', '--type', 'user')).includes(made.id));
      assert.ok((await ok('template', 'list', '--type', 'official')).includes('runpod-ubuntu'));
      await ok('template', 'search', 'ubuntu');
      await ok('template', 'update', made.id, '--name', `renamed ${speaksV2}`);
      assert.equal((await json('template', 'get', made.id)).name, `renamed ${speaksV2}`);
      await ok('template', 'delete', made.id);
    });

    test('network volumes: create, list, get, update, delete', async () => {
      const made = await json(
        'network-volume',
        'create',
        '--name',
        'ctl',
        '--size',
        '10',
        '--data-center-id',
        'LOCAL-1',
      );
      assert.ok(ids(await json<Thing[]>('network-volume', 'list')).includes(made.id));
      await ok('network-volume', 'update', made.id, '--size', '20');
      assert.equal((await json('network-volume', 'get', made.id))['size'], 20);
      await ok('network-volume', 'delete', made.id);
    });

    test('registry credentials: create, list, get, delete', async () => {
      const made = await json('registry', 'create', '--name', 'ctl', '--username', 'u', '--password', 'p');
      assert.ok(ids(await json<Thing[]>('registry', 'list')).includes(made.id));
      assert.equal((await json('registry', 'get', made.id)).name, 'ctl');
      await ok('registry', 'delete', made.id);
    });

    test('SSH keys: add and list', async () => {
      const key = `${ed25519PublicKey()} ctl`;
      await ok('ssh', 'add-key', '--key', key);
      assert.ok((await ok('ssh', 'list-keys')).includes('ctl'));
    });

    test('the hub and models', async () => {
      assert.match(await ok('hub', 'list'), /echo/);
      assert.match(await ok('hub', 'search', 'echo'), /echo/);
      assert.match(await ok('hub', 'get', 'berth/echo'), /echo/);
      await ok('model', 'add', '--name', 'tiny');
      assert.match(await ok('model', 'list'), /tiny/);
    });

    for (const what of ['pods', 'serverless', 'network-volume']) {
      test(`billing ${what}`, async () => {
        await ok('billing', what, '--bucket-size', 'day');
      });
    }

    test('the commands of version 1', async () => {
      assert.match(await ok('get', 'cloud'), new RegExp(`1x ${GPU}\\s+\\d+\\s+\\d+\\s`));
      const made = await ok(
        'create',
        'pod',
        '--name',
        'old',
        '--templateId',
        await template(),
        '--imageName',
        'local/shell',
        '--gpuType',
        GPU,
        '--secureCloud',
        '--mem',
        '1',
        '--volumeSize',
        '0',
      );
      const id = /pod "(\w+)"/.exec(made)?.[1];
      assert.ok(id !== undefined, made);
      assert.ok((await ok('get', 'pod')).includes(id));
      await ok('stop', 'pod', id);
      await ok('start', 'pod', id);
      await ok('remove', 'pod', id);
    });

    test('a CPU pod by the command of version 1', async () => {
      const made = await ok(
        'create',
        'pod',
        '--name',
        'old-cpu',
        '--computeType',
        'CPU',
        '--imageName',
        'local/shell',
        '--volumeSize',
        '0',
      );
      const id = /pod "(\w+)"/.exec(made)?.[1];
      assert.ok(id !== undefined, made);
      assert.equal(
        (await fixture.client.call<{ gpu?: unknown }>('GET', `/v2/pods/${id}`)).body.gpu ?? null,
        null,
      );
      await ok('remove', 'pod', id);
    });
  });
}

/** A valid key in OpenSSH's form: two fields with their lengths, the type and 32 bytes. */
function ed25519PublicKey(): string {
  const raw = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'der' }).subarray(-32);
  const field = (bytes: Buffer): Buffer => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  return `ssh-ed25519 ${Buffer.concat([field(Buffer.from('ssh-ed25519')), field(raw)]).toString('base64')}`;
}
