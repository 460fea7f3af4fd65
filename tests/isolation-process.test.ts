import assert from 'node:assert/strict';
import { existsSync, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { CopyObjectCommand, GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import {
  containerLogLines,
  createPod,
  SMALL_CPU,
  waitForPodStatus,
} from '../packages/testing/src/pod-client.ts';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import { listWorkers } from '../packages/testing/src/deploy-handler.ts';
import { freePort } from '../packages/testing/src/free-port.ts';
import { createS3Client, createS3Key } from '../packages/testing/src/s3-test-client.ts';
import { parseLogLines, serverFixture, type TestAccount } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { ATTEMPTS, HOSTILE } from './isolation/hostile-attempts.ts';
import { processOf, SECRET, SYSTEM_V_KEY, VICTIM } from './isolation/victim-process.ts';

/** Users of their own need root; the tests of what happens without it are in isolation-refused.test.ts. */
const skip = process.platform !== 'linux' || process.getuid?.() !== 0;

describe('a hostile tenant on the process engine', { skip }, () => {
  const pods: { account: TestAccount; id: string }[] = [];
  // Before the server is stopped, which is the first hook after this one.
  after(async () => {
    for (const { account, id } of pods) await account.call('DELETE', `/v2/pods/${id}`);
  });
  const fixture = serverFixture('sqlite', { BERTH_RATE_LIMITS: 'off' });
  const results = new Map<number, { code: number; output: string }>();
  let victim: TestAccount;
  let hostile: TestAccount;
  let victimPod: string;
  let victimRoot: string;
  let victimPid: number;
  let victimVolume: string;
  let victimJob: { endpointId: string; id: string };
  let hostilePod: string;

  const startPod = async (account: TestAccount, body: Record<string, unknown>): Promise<string> => {
    const { status, body: pod, text } = await createPod(account, body);
    assert.equal(status, 201, text);
    pods.push({ account, id: pod.id });
    await waitForPodStatus(account, pod.id, 'RUNNING');
    return pod.id;
  };
  const createVolume = async (account: TestAccount): Promise<string> => {
    const wanted = { name: 'volume', size: 10, dataCenter: 'LOCAL-1' };
    const { status, body, text } = await account.call<{ id: string }>('POST', '/v2/network-volumes', wanted);
    assert.equal(status, 201, text);
    return body.id;
  };
  const submitJob = async (account: TestAccount): Promise<{ endpointId: string; id: string }> => {
    const endpoint = await account.call<{ id: string }>('POST', '/v2/serverless', {
      name: 'queue',
      type: 'QUEUE',
      image: 'local/shell',
      cpu: [SMALL_CPU],
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
      workers: { min: 0, max: 0 },
    });
    assert.equal(endpoint.status, 201, endpoint.text);
    const { id: endpointId } = endpoint.body;
    const { status, body, text } = await account.call<{ id: string }>('POST', `/v2/${endpointId}/run`, {
      input: SECRET,
    });
    assert.equal(status, 200, text);
    return { endpointId, id: body.id };
  };
  const logOf = async (account: TestAccount, id: string): Promise<string> =>
    (await containerLogLines(account, id)).map((line) => `${line}\n`).join('');
  const waitForLog = (account: TestAccount, id: string, wanted: RegExp): Promise<string> =>
    waitFor(
      `${id} wrote ${wanted}`,
      async () => {
        const log = await logOf(account, id);
        return wanted.test(log) && log;
      },
      60_000,
    );

  before(async () => {
    victim = await fixture.createAccount('victim');
    hostile = await fixture.createAccount('hostile');
    const { data } = fixture.database;
    victimVolume = await createVolume(victim);
    const victimPort = await freePort();
    victimJob = await submitJob(victim);
    victimPod = await startPod(victim, {
      cmd: ['sh', '-c', VICTIM],
      env: { SECRET, PORT: String(victimPort) },
      ports: ['8000/http'],
      mounts: { network: [{ volumeId: victimVolume, path: '/workspace' }] },
    });
    await waitForLog(victim, victimPod, /ready/);
    victimRoot = join(data, 'instances', victimPod, 'root');
    const victimUid = statSync(victimRoot).uid;
    victimPid = processOf(victimUid);
    hostilePod = await startPod(hostile, {
      cmd: ['sh', '-c', 'eval "$HOSTILE"'],
      env: {
        OWN_SECRET: 'hello',
        DATA: resolve(data),
        BERTH_PID: String(fixture.server.process.pid),
        BERTH_PROGRAM: fileURLToPath(new URL('../packages/cloud/bin/berth.js', import.meta.url)),
        VICTIM_POD: victimPod,
        VICTIM_ROOT: victimRoot,
        VICTIM_VOLUME: join(data, 'volumes', victimVolume),
        VICTIM_PID: String(victimPid),
        VICTIM_UID: String(victimUid),
        VICTIM_KEY: String(SYSTEM_V_KEY),
        VICTIM_PORT: String(victimPort),
        VICTIM_ENDPOINT: victimJob.endpointId,
        VICTIM_JOB: victimJob.id,
        API: fixture.server.url,
        API_PORT: new URL(fixture.server.url).port,
        HOSTILE,
      },
    });
    const log = await waitForLog(hostile, hostilePod, /^@@ done$/m);
    assert.match(log, /mine is hello/);
    for (const [index] of ATTEMPTS.entries()) {
      const found = new RegExp(`^@@ begin ${index}$([^]*?)^@@ end ${index} (\\d+)$`, 'm').exec(log);
      assert.ok(found, `attempt ${index} has no result: ${log.slice(-3000)}`);
      results.set(index, { output: found[1] ?? '', code: Number(found[2]) });
    }
  });

  const secrets = (): string[] => [
    SECRET,
    fixture.server.key,
    readFileSync(join(fixture.database.data, 'master.key'), 'utf8').trim(),
    'BERTH_ROOT_KEY',
  ];

  for (const [index, { name, mayEnd, mayBeAbsent }] of ATTEMPTS.entries())
    test(`cannot ${name}`, () => {
      const { code, output } = results.get(index) ?? { code: 0, output: '' };
      for (const secret of secrets()) assert.ok(!output.includes(secret), output);
      if (mayEnd !== true) assert.notEqual(code, 0, output);
      // A time-out or a missing program would prove nothing.
      assert.ok(
        code !== 124 && code !== 127 && !/SyntaxError|not found$/m.test(output),
        `${code}: ${output}`,
      );
      if (mayBeAbsent !== true) assert.doesNotMatch(output, /no such address/);
    });

  test('did not change the victim or Berth', async () => {
    assert.equal(readFileSync(join(victimRoot, 'secret.txt'), 'utf8'), `${SECRET}\n`);
    assert.ok(!existsSync(join(victimRoot, 'planted')));
    assert.ok(existsSync(`/proc/${victimPid}`));
    assert.equal(readFileSync(join(fixture.database.data, 'root.key'), 'utf8').trim(), fixture.server.key);
    await waitForPodStatus(victim, victimPod, 'RUNNING');
    const { endpointId, id } = victimJob;
    const { body } = await victim.call<{ status: string }>('GET', `/v2/${endpointId}/status/${id}`);
    assert.equal(body.status, 'IN_QUEUE');
  });

  test('runs as a user of its own, and its things are closed to others', () => {
    const { data } = fixture.database;
    const [one, other] = [victimPod, hostilePod].map((id) => statSync(join(data, 'instances', id, 'root')));
    assert.notEqual(one?.uid, other?.uid);
    assert.ok((one?.uid ?? 0) > 0 && (other?.uid ?? 0) > 0);
    for (const folder of [one, other]) assert.equal((folder?.mode ?? 0) & 0o077, 0);
    assert.equal(statSync(data).mode & 0o777, 0o700);
    for (const name of readdirSync(data)) assert.equal(lstatSync(join(data, name)).mode & 0o077, 0, name);
  });

  test("cannot take over the other account's port with its marker", async () => {
    const server = `import http.server, os
class H(http.server.BaseHTTPRequestHandler):
  def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b'hostile')
print('listening', flush=True)
http.server.HTTPServer(('127.0.0.1', 8000), H).serve_forever()`;
    const id = await startPod(hostile, {
      cmd: ['sh', '-c', 'exec env BERTH_ROOT="$VICTIM_ROOT" python3 -c "$SERVER"'],
      env: { VICTIM_ROOT: victimRoot, SERVER: server },
    });
    await waitForLog(hostile, id, /listening/);
    const response = await fetch(`${fixture.server.url}/proxy/${victimPod}-8000/`);
    assert.notEqual(await response.text(), 'hostile');
  });

  test('can use the token of its worker for the queue of its own endpoint, and nothing else', async () => {
    const made = await hostile.call<{ id: string }>('POST', '/v2/serverless', {
      name: 'hostile',
      type: 'QUEUE',
      image: 'local/shell',
      args: JSON.stringify({
        entrypoint: ['sh', '-c'],
        cmd: ['echo "token $RUNPOD_AI_API_KEY"; exec sleep 1000'],
      }),
      cpu: [SMALL_CPU],
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
      workers: { min: 1, max: 1 },
    });
    assert.equal(made.status, 201, made.text);
    const own = made.body.id;
    const { workerId, token } = await waitFor('the worker writes its token', async () => {
      for (const { id } of await listWorkers(hostile, own)) {
        const logs = await hostile.call('GET', `/v2/serverless/${own}/workers/${id}/logs?follow=false`);
        const found = /token (rpw_[\w-]+)/.exec(logs.text)?.[1];
        if (found !== undefined) return { workerId: id, token: found };
      }
      return undefined;
    });
    const worker = createApiClient(fixture.server.url, token);
    const { endpointId, id } = victimJob;
    for (const [method, path, body] of [
      ['GET', '/v2/pods'],
      ['GET', '/v1/pods'],
      ['GET', '/v2/account'],
      ['GET', '/v2/account/secrets'],
      ['GET', '/v2/account/api-keys'],
      ['GET', '/v2/accounts'],
      ['GET', '/v2/serverless'],
      ['GET', '/v2/backup/status'],
      ['GET', '/v2/events'],
      ['POST', '/v2/pods', {}],
      ['GET', `/v2/${own}/status/${id}`],
      ['POST', `/v2/${own}/run`, { input: 1 }],
      ['GET', `/v2/${endpointId}/status/${id}`],
      ['GET', `/v2/${endpointId}/job-take/${workerId}?gpu=none&job_in_progress=0`],
      ['GET', `/v2/${own}/job-take/another?gpu=none&job_in_progress=0`],
      ['POST', `/v2/${endpointId}/job-done/${workerId}/${id}?gpu=none`, { output: 'mine' }],
      ['POST', `/v2/${endpointId}/job-stream/${workerId}/${id}?gpu=none`, { output: 'mine' }],
    ] as const) {
      const { status, text } = await worker.call(method, path, body);
      assert.equal(status, 401, `${method} ${path} ${text}`);
      assert.doesNotMatch(text, /no such address/, path);
    }
    const query = '{ myself { id } }';
    assert.match((await worker.call('POST', '/graphql', { query })).text, /"errors"/);
    // Within its own endpoint it names the other account's job. Whatever that is answered, the job stays as
    // it is.
    for (const operation of ['job-done', 'job-stream'])
      await worker.call('POST', `/v2/${own}/${operation}/${workerId}/${id}?gpu=none`, { output: 'mine' });
    const job = await victim.call<{ status: string; output?: unknown }>(
      'GET',
      `/v2/${endpointId}/status/${id}`,
    );
    assert.deepEqual([job.body.status, job.body.output], ['IN_QUEUE', undefined]);
    assert.equal((await hostile.call('DELETE', `/v2/serverless/${own}`)).status, 204);
  });

  test('gets nothing of the other account by naming it in what it creates, copies or lists', async () => {
    const volume = await createVolume(hostile);
    const target = victimVolume;
    const key = await createS3Key(hostile);
    const s3 = createS3Client(fixture.server.url, key);
    for (const [Bucket, Key] of [
      [target, 'secret.txt'],
      [volume, `../${target}/secret.txt`],
      [`${volume}/../${target}`, 'secret.txt'],
      ['..', 'root.key'],
    ] as const) {
      await assert.rejects(s3.send(new GetObjectCommand({ Bucket, Key })), `${Bucket} ${Key}`);
      await assert.rejects(
        s3.send(new PutObjectCommand({ Bucket, Key, Body: 'planted' })),
        `${Bucket} ${Key}`,
      );
    }
    for (const CopySource of [`${target}/secret.txt`, `${volume}/../${target}/secret.txt`])
      await assert.rejects(s3.send(new CopyObjectCommand({ Bucket: volume, Key: 'copy', CopySource })));
    s3.destroy();

    const refused = async (method: string, path: string, body?: unknown): Promise<void> => {
      const { status, text } = await hostile.call(method, path, body);
      assert.ok(status >= 400 && status < 500, `${method} ${path} ${status} ${text}`);
      assert.doesNotMatch(text, /no such address/, path);
      assert.ok(!text.includes(SECRET), text);
    };
    await refused('GET', `/v2/network-volumes/${target}`);
    await refused('GET', `/v2/network-volumes/${target}/files`);
    await refused('GET', `/v2/network-volumes/${target}/files/content?path=secret.txt`);
    await refused('GET', `/v2/network-volumes/${volume}/files?path=${encodeURIComponent(`../${target}`)}`);
    await refused(
      'GET',
      `/v2/network-volumes/${volume}/files/content?path=${encodeURIComponent(`../${target}/secret.txt`)}`,
    );
    await refused('POST', '/v2/pods', {
      name: 'pod',
      image: 'local/shell',
      cpu: SMALL_CPU,
      mounts: { network: [{ volumeId: target, path: '/workspace' }] },
    });
    for (const path of ['../planted', '/etc/cron.d/planted', 'a/../../planted', 'a\0b', ''])
      await refused('POST', '/v2/images', { name: 'planted', files: [{ path, data: 'eA==' }] });
    await refused('GET', `/v2/pods/${victimPod}/terminal?cmd=id`);
    await refused('GET', `/v2/serverless/${victimJob.endpointId}/jobs/${victimJob.id}`);
    await refused('GET', '/v2/accounts');
    await refused('GET', '/v2/backup/status');
  });

  test('cannot fill the machine with an archive', async () => {
    const headers = { 'content-type': 'application/x-tar' };
    const path = `/v2/pods/${hostilePod}/files?path=/`;
    // A header that announces more than any disk has, and nothing after it.
    const huge = Buffer.alloc(1024);
    huge.write('huge\0', 0);
    huge.write('0000644\0', 100);
    huge.write('\x80\0\0\0\x3f\xff\xff\xff\xff\xff\xff\xff', 124, 'latin1');
    huge.write('        0', 148);
    huge.write('ustar\x0000', 257);
    const sum = huge.subarray(0, 512).reduce((total, byte) => total + byte, 0);
    huge.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    for (const [body, more] of [
      [huge, {}],
      [bomb, {}],
      [bomb, { 'content-encoding': 'gzip' }],
    ] as const) {
      const { status, text } = await hostile.call('PUT', path, body, { ...headers, ...more });
      assert.ok(status >= 400 && status < 500, `${status} ${text}`);
    }
    assert.deepEqual(
      readdirSync(join(fixture.database.data, 'instances', hostilePod, 'root')).filter(
        (name) => name === 'huge',
      ),
      [],
    );
  });

  test("cannot forge lines of Berth's log", async () => {
    const forged = '\n{"level":"fatal","msg":"forged"}\n';
    await createPod(hostile, { name: `x${forged}`, env: { A: forged }, image: `local/shell${forged}` });
    await hostile.call('GET', `/v2/pods/${encodeURIComponent(forged)}`);
    await hostile.call('GET', `/v2/${victimJob.endpointId}/status/${encodeURIComponent(forged)}`, undefined, {
      'user-agent': 'x\u0085{"level":"fatal","msg":"forged"}',
    });
    assert.ok(parseLogLines(fixture.server).every(({ msg }) => msg !== 'forged'));
  });

  test('gets no rights of root through its environment', async () => {
    const bin =
      'mkdir -p /workspace/bin; for p in setpriv mount umount pivot_root cat env sh; do printf ' +
      '"#!/bin/sh\\nid -u >> /workspace/ids\\nexec /usr/bin/$0 \\"\\$@\\"\\n" > /workspace/bin/$p; ' +
      'chmod 755 /workspace/bin/$p; done';
    const volumeId = await createVolume(hostile);
    const prepared = await startPod(hostile, {
      cmd: ['sh', '-c', `${bin}; echo prepared; exec sleep 1000`],
      mounts: { network: [{ volumeId, path: '/workspace' }] },
    });
    await waitForLog(hostile, prepared, /prepared/);
    const folder = join(fixture.database.data, 'volumes', volumeId);
    const changed = await hostile.call('PATCH', `/v2/pods/${prepared}`, {
      env: {
        PATH: `${folder}/bin:/workspace/bin:/usr/bin:/bin`,
        ENV: `${folder}/bin/cat`,
        LD_PRELOAD: `${folder}/evil.so`,
        IFS: 'x',
      },
      cmd: ['sh', '-c', 'echo again; exec sleep 1000'],
    });
    assert.equal(changed.status, 200, changed.text);
    await waitForLog(hostile, prepared, /again/);
    const ids = existsSync(join(folder, 'ids')) ? readFileSync(join(folder, 'ids'), 'utf8') : '';
    assert.doesNotMatch(ids, /^0$/m);
  });

  test('cannot have Berth link its volume into the machine', async () => {
    const volumeId = await createVolume(hostile);
    for (const path of ['/etc/cron.d/berth-planted', '/usr/local/bin/berth-planted', '/berth-planted']) {
      const id = await startPod(hostile, { mounts: { network: [{ volumeId, path }] } });
      assert.ok(lstatSync(path, { throwIfNoEntry: false }) === undefined, path);
      await hostile.call('DELETE', `/v2/pods/${id}`);
    }
  });
});
