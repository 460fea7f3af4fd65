import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import type { S3Client } from '@aws-sdk/client-s3';
import { createApiClient } from '../../packages/testing/src/api-client.ts';
import { createTestDatabase } from '../../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../../packages/testing/src/test-database.ts';
import type { EngineFixture } from '../../packages/testing/src/engine-fixture.ts';
import {
  podAction,
  waitForPodStatus,
  containerLogLines,
  createRunningPod,
} from '../../packages/testing/src/pod-client.ts';
import { runBerth } from '../../packages/testing/src/berth-command.ts';
import type { CommandResult } from '../../packages/testing/src/berth-command.ts';
import { createS3Key, createVolume, createS3Client } from '../../packages/testing/src/s3-test-client.ts';
import { startServerProcess } from '../../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../../packages/testing/src/server-process.ts';
import { parseLogLines } from '../../packages/testing/src/server-fixture.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

const MB = 1024 ** 2;
/** Where a mount is, on either engine. */
const AT = '"${BERTH_ROOT:-}/shared"';

/**
 * One volume, several pods and a worker that have it at once, and S3; and files copied into pods and out of
 * them.
 */
export function volumeSharingSuite(open: () => Promise<EngineFixture>): void {
  let engine: EngineFixture;
  let place: TestDatabase;
  let server: ServerProcess;
  let here: string;
  before(async () => {
    engine = await open();
    place = await createTestDatabase('sqlite');
    here = mkdtempSync(join(tmpdir(), 'berth-sharing-'));
    server = await startServerProcess(place, { ...engine.env, BERTH_RATE_LIMITS: 'off' });
    await waitFor('the data center is there', async () =>
      (await server.client().call('GET', '/v2/catalog/datacenters')).text.includes(engine.dataCenterId),
    );
  });
  after(async () => {
    for (const { id } of (await server.client().call<{ pods: { id: string }[] }>('GET', '/v2/pods')).body
      .pods)
      await server.client().call('DELETE', `/v2/pods/${id}`);
    for (const { id } of (
      await server.client().call<{ endpoints: { id: string }[] }>('GET', '/v2/serverless')
    ).body.endpoints)
      await server.client().call('DELETE', `/v2/serverless/${id}`);
    assert.deepEqual(
      parseLogLines(server).filter(({ level }) => level === 'error'),
      [],
    );
    await server.stop();
    await engine.close();
    await place.drop();
    rmSync(here, { recursive: true });
  });

  const run = (script: string, body: Record<string, unknown> = {}) =>
    createRunningPod(server.client(), {
      image: engine.image,
      cmd: ['sh', '-c', script],
      dataCenterIds: [engine.dataCenterId],
      ...body,
    });
  const writes = (id: string, line: string): Promise<true> =>
    waitFor(
      `${id} writes ${line}`,
      async () => (await containerLogLines(server.client(), id)).includes(line) || undefined,
    );

  describe('a network volume that several have at once', () => {
    let s3: S3Client;
    let Bucket: string;
    before(async () => {
      Bucket = await createVolume(server.client(), { dataCenter: engine.dataCenterId });
      s3 = createS3Client(server.url, await createS3Key(server.client()), { region: engine.dataCenterId });
    });
    after(() => s3.destroy());

    test('what a pod, a worker or S3 writes, all others see; a volume in use cannot go, and can grow', async () => {
      const mounts = { network: [{ volumeId: Bucket, path: '/shared' }] };
      const relay = (from: string, to: string): string =>
        `cd ${AT}; until [ -f done-${from} ]; do sleep 0.05; done; cat ${from} > ${to}; echo " and ` +
        `${to}" >> ${to}; touch done-${to}; echo did ${to}; exec sleep 1000`;
      const pods = [
        await run(relay('from-s3', 'one'), { name: 'one', mounts }),
        await run(relay('one', 'two'), { name: 'two', mounts }),
      ];
      const worker = await server.client().call<{ id: string }>('POST', '/v2/serverless', {
        name: 'third',
        type: 'QUEUE',
        image: engine.image,
        cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
        networkVolumes: [Bucket],
        dataCenterIds: [engine.dataCenterId],
        workers: { min: 1, max: 1 },
        scaling: { type: 'REQUEST_COUNT', requestCount: 1 },
        entrypoint: ['sh', '-c'],
        cmd: [relay('two', 'three').replace('/shared', '/runpod-volume')],
      });
      assert.equal(worker.status, 201, worker.text);
      for (const Key of ['from-s3', 'done-from-s3'])
        await s3.send(new PutObjectCommand({ Bucket, Key, Body: 'from S3\n' }));
      for (const [index, { id }] of pods.entries()) await writes(id, `did ${['one', 'two'][index]}`);
      const last = await waitFor(
        'the worker has written',
        async () => {
          try {
            await s3.send(new HeadObjectCommand({ Bucket, Key: 'done-three' }));
            return await (
              await s3.send(new GetObjectCommand({ Bucket, Key: 'three' }))
            ).Body?.transformToString();
          } catch (error) {
            if ((error as Error).name === 'NotFound') return undefined;
            throw error;
          }
        },
        60_000,
      );
      assert.equal(last, 'from S3\n and one\n and two\n and three\n');
      assert.deepEqual(
        (await s3.send(new ListObjectsV2Command({ Bucket }))).Contents?.map(({ Key }) => Key),
        ['done-from-s3', 'done-one', 'done-three', 'done-two', 'from-s3', 'one', 'three', 'two'],
      );

      const refused = await server.client().call('DELETE', `/v2/network-volumes/${Bucket}`);
      assert.deepEqual(
        [refused.status, /uses this network volume|has this network volume/.test(refused.text)],
        [400, true],
        refused.text,
      );
      assert.equal(
        (await server.client().call('PATCH', `/v2/network-volumes/${Bucket}`, { size: 50 })).status,
        200,
      );
      assert.equal((await server.client().call('DELETE', `/v2/serverless/${worker.body.id}`)).status, 204);
      for (const { id } of pods) assert.equal((await podAction(server.client(), id, 'stop')).status, 200);
      assert.equal(
        (await server.client().call('DELETE', `/v2/network-volumes/${Bucket}`)).status,
        400,
        'a stopped pod still has it',
      );
      for (const { id } of pods)
        assert.equal((await server.client().call('DELETE', `/v2/pods/${id}`)).status, 204);
      assert.equal((await server.client().call('DELETE', `/v2/network-volumes/${Bucket}`)).status, 204);
      assert.ok(!existsSync(join(place.data, 'volumes', Bucket)));
    });
  });

  describe('files of a pod', () => {
    let id: string;
    const berth = <T = Record<string, unknown>>(...args: string[]): Promise<CommandResult<T>> =>
      runBerth<T>(args, { BERTH_URL: server.url, BERTH_API_KEY: server.key });
    const works = async <T = Record<string, unknown>>(...args: string[]): Promise<T> => {
      const ran = await berth<T>(...args);
      assert.equal(ran.code, 0, ran.stderr);
      return ran.json;
    };
    const refused = async (...args: string[]): Promise<string> => {
      const ran = await berth(...args);
      assert.notEqual(ran.code, 0);
      return ran.stderr;
    };
    before(async () => {
      const Bucket = await createVolume(server.client(), {
        name: 'of the pod',
        dataCenter: engine.dataCenterId,
      });
      const base = '${BERTH_ROOT:-}';
      ({ id } = await run(
        `mkdir -p "${base}/app/inner"; echo made in the pod > "${base}/app/inner/made"; echo ready; ` +
          `while :; do for f in "${base}/app"/go-*; do [ -f "$f" ] && echo "saw $(cat "$f")" && rm "$f"; ` +
          'done; sleep 0.05; done',
        { name: 'copied', mounts: { network: [{ volumeId: Bucket, path: '/shared' }] } },
      ));
      await writes(id, 'ready');
    });

    test('a file goes in, where the pod finds it, and comes out', async () => {
      writeFileSync(join(here, 'go-first'), 'the first\n');
      assert.deepEqual(await works('pod', 'cp', join(here, 'go-first'), `${id}:/app/`), {
        pod: id,
        files: 1,
        bytes: 10,
      });
      await writes(id, 'saw the first');
      await works('pod', 'cp', join(here, 'go-first'), 'copied:/app/go-renamed');
      await works('pod', 'cp', join(here, 'go-first'), `${id}:/new/folders/kept`);
      await works('pod', 'cp', `${id}:/new/folders/kept`, join(here, 'back'));
      assert.equal(readFileSync(join(here, 'back'), 'utf8'), 'the first\n');
      await works('pod', 'cp', `${id}:/app/inner/made`, `${here}/`);
      assert.equal(readFileSync(join(here, 'made'), 'utf8'), 'made in the pod\n');
    });

    test('a folder goes in and comes out as it is, also through a mount', async () => {
      const tree = join(here, 'tree');
      mkdirSync(join(tree, 'deep', 'n'.repeat(120)), { recursive: true });
      mkdirSync(join(tree, 'empty'));
      writeFileSync(join(tree, 'run.sh'), '#!/bin/sh\n', { mode: 0o755 });
      writeFileSync(join(tree, 'deep', 'n'.repeat(120), 'ünï ☃'), randomBytes(3 * MB));
      symlinkSync('run.sh', join(tree, 'link'));
      for (const target of ['/app', '/shared']) {
        assert.equal((await works<{ files: number }>('pod', 'cp', tree, `${id}:${target}`)).files, 2);
        const back = join(here, `back${target.replace('/', '-')}`);
        assert.equal((await works<{ files: number }>('pod', 'cp', `${id}:${target}/tree`, back)).files, 2);
        assert.equal(execFileSync('diff', ['-r', '--no-dereference', tree, back]).toString(), '');
        assert.equal(statSync(join(back, 'run.sh')).mode & 0o777, 0o755);
      }
      await works('pod', 'cp', `${id}:/shared`, join(here, 'whole-mount'));
      assert.ok(existsSync(join(here, 'whole-mount', 'tree', 'run.sh')));
    });

    test('large ones are not in memory: 200 MB there and back', async () => {
      const content = Buffer.concat(Array.from({ length: 200 }, () => Buffer.alloc(MB, randomBytes(1_021))));
      writeFileSync(join(here, 'large'), content);
      await works('pod', 'cp', join(here, 'large'), `${id}:/app/large`);
      await works('pod', 'cp', `${id}:/app/large`, join(here, 'large-back'));
      const hash = (bytes: Buffer): string => createHash('sha1').update(bytes).digest('hex');
      assert.equal(hash(readFileSync(join(here, 'large-back'))), hash(content));
    });

    test('what cannot be copied is refused in words', async () => {
      assert.match(await refused('pod', 'cp', `${id}:/nothing`, here), /nothing at \/nothing/);
      assert.match(
        await refused('pod', 'cp', join(here, 'nothing'), `${id}:/app`),
        /there is no file or folder .*\/nothing/,
      );
      assert.match(await refused('pod', 'cp', here, 'nopod:/x'), /no pod "nopod"/);
      assert.match(await refused('pod', 'cp', here, join(here, 'x')), /must be POD:\/path/);
      assert.match(await refused('pod', 'cp', `${id}:/`, here), /name a file or a folder/);
      const call = (method: string, path: string, body?: string, type = 'application/x-tar') =>
        server.client().call(method, `/v2/pods/${id}/files${path}`, body, { 'content-type': type });
      assert.equal((await call('PUT', '?path=/app', 'no archive at all'.repeat(100))).status, 400);
      assert.equal((await call('PUT', '?path=/nowhere/at/all', '')).status, 404);
      assert.equal((await call('PUT', '?path=/app', '{}', 'application/json')).status, 415);
      assert.equal((await call('PUT', '', '')).status, 422);
      assert.equal(
        (await server.client().call('POST', '/v2/templates', 'x', { 'content-type': 'application/x-tar' }))
          .status,
        415,
      );
      assert.equal(
        (
          await server
            .client()
            .call('GET', `/v2/pods/${id}/files/info?path=${encodeURIComponent('/app/inner')}`)
        ).text.includes('"folder"'),
        true,
      );
      const other = (await server.client().call<{ key: string }>('POST', '/v2/accounts', { name: 'other' }))
        .body.key;
      assert.equal(
        (await createApiClient(server.url, other).call('GET', `/v2/pods/${id}/files?path=/app`)).status,
        404,
      );
      const reader = (
        await server
          .client()
          .call<{ key: string }>('POST', '/v2/account/api-keys', { name: 'reader', access: 'READ_ONLY' })
      ).body.key;
      assert.equal(
        (await createApiClient(server.url, reader).call('GET', `/v2/pods/${id}/files?path=/app`)).status,
        403,
      );
    });

    test('a client that goes away in the middle does no harm, and a stopped pod says so', async () => {
      const { hostname, port } = new URL(server.url);
      const socket = connect(Number(port), hostname);
      socket.write(
        `PUT /v2/pods/${id}/files?path=/app HTTP/1.1\r\nhost: ${hostname}\r\n` +
          `authorization: Bearer ${server.key}\r\ncontent-type: application/x-tar\r\n` +
          `content-length: 1000000\r\n\r\n`,
      );
      socket.write(Buffer.alloc(100));
      await new Promise((resolve) => socket.once('connect', resolve));
      socket.destroy();
      assert.equal((await server.client().call('GET', `/v2/pods/${id}/files/info?path=/app`)).status, 200);
      await podAction(server.client(), id, 'stop');
      await waitForPodStatus(server.client(), id, 'EXITED');
      assert.match(await refused('pod', 'cp', join(here, 'large'), `${id}:/app`), /is not running/);
    });
  });
}
