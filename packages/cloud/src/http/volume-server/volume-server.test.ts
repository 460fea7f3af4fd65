import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { remoteVolume } from '../../resources/volumes/remote/remote-volume.ts';
import { VolumeServerCalls } from '../../resources/volumes/remote/volume-server-calls.ts';
import { VolumeServerClient } from '../../resources/volumes/remote/volume-server-client.ts';
import type { VolumeBackend } from '../../resources/volumes/volume-backend.ts';
import { BerthError } from '../../support/errors.ts';
import { createVolumeServer } from './volume-server.ts';

const CAPACITY = 1024 ** 2;

async function* piece(content: Uint8Array | string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(content);
}

describe('a volume behind a volume server', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-volume-server-'));
  let server: Server;
  let volume: VolumeBackend;
  let token = 'right';
  let unreachable = 0;

  const start = async (): Promise<void> => {
    server = createVolumeServer({
      calls: new VolumeServerCalls(folder),
      token: 'right',
      idleMs: 60_000,
      onIdle: () => undefined,
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
  };
  const stop = async (): Promise<void> => {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };

  before(async () => {
    await start();
    volume = remoteVolume(
      new VolumeServerClient({
        connect: async () => {
          if (!server.listening) await start();
          return { host: '127.0.0.1', port: (server.address() as AddressInfo).port, token };
        },
        onUnreachable: () => (unreachable += 1),
        capacity: CAPACITY,
      }),
    );
  });
  after(async () => {
    await stop();
    rmSync(folder, { recursive: true });
  });

  const put = (key: string, content: Uint8Array | string, condition?: () => void) =>
    volume.objects.put(
      key,
      {
        bytes: piece(content),
        length: Buffer.byteLength(content),
        headers: { 'content-type': 'text/x' },
        checksums: () => ({ 'x-amz-checksum-crc32': 'abc' }),
      },
      condition,
    );

  test('keeps objects with their metadata in the folder that instances mount', async () => {
    const content = randomBytes(300_000);
    const stored = await put('a/b.bin', content);
    assert.equal(stored.etag, createHash('md5').update(content).digest('hex'));
    assert.deepEqual(readFileSync(join(folder, 'data/a/b.bin')), content);
    const object = await volume.objects.open('a/b.bin');
    assert.deepEqual(
      [object?.headers, object?.checksums],
      [{ 'content-type': 'text/x' }, { 'x-amz-checksum-crc32': 'abc' }],
    );
    assert.deepEqual(await buffer(object?.read(10, 19) ?? Readable.from([])), content.subarray(10, 20));
    assert.equal(await volume.objects.open('a/absent'), undefined);
    assert.equal((await volume.usage()).bytes, content.length);
    await volume.objects.remove('a/b.bin');
    assert.equal(existsSync(join(folder, 'data/a')), false, 'the folder goes with its last object');
  });

  test('refuses what a condition refuses, what is too large, and what was cut off', async () => {
    await put('kept', 'first');
    const refusal = new BerthError('conflict', 'it is there');
    await assert.rejects(
      put('kept', 'second', () => {
        throw refusal;
      }),
      refusal,
    );
    await assert.rejects(put('large', randomBytes(CAPACITY + 1)), { code: 'too-large' });
    const cut = { bytes: piece('half'), length: 8, headers: {} };
    await assert.rejects(volume.objects.put('cut', cut));
    const failing = async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.from('some');
      throw new BerthError('malformed', 'its checksum is wrong');
    };
    await assert.rejects(volume.objects.put('cut', { bytes: failing(), length: 8, headers: {} }), {
      code: 'malformed',
    });
    assert.equal(await volume.objects.head('cut'), undefined);
    assert.equal(readFileSync(join(folder, 'data/kept'), 'utf8'), 'first');
  });

  test('decides again when the object changed while its content arrived', async () => {
    await put('raced', 'first');
    const seen: (string | undefined)[] = [];
    const slow = async function* (): AsyncGenerator<Uint8Array> {
      writeFileSync(join(folder, 'data/raced'), 'by a pod');
      yield Buffer.from('second');
    };
    await volume.objects.put('raced', { bytes: slow(), length: 6, headers: {} }, (present) => {
      seen.push(present === undefined ? undefined : String(present.size));
    });
    assert.deepEqual([...new Set(seen)], ['5', '8']);
    assert.equal(readFileSync(join(folder, 'data/raced'), 'utf8'), 'second');
  });

  test('joins parts', async () => {
    const upload = await volume.uploads.create('joined', { 'content-type': 'text/y' });
    const parts = [];
    for (const [index, content] of ['one ', 'two'].entries())
      parts.push(
        await volume.uploads.putPart(upload, index + 1, { bytes: piece(content), length: content.length }),
      );
    assert.equal((await volume.uploads.find(upload.id, 'joined'))?.id, upload.id);
    assert.deepEqual(
      (await volume.uploads.listParts(upload.id)).map(({ etag }) => etag),
      parts.map(({ etag }) => etag),
    );
    const { etag, size } = await volume.uploads.complete(upload, parts, () => undefined);
    assert.match(etag, /-2$/);
    assert.equal(size, 7);
    assert.deepEqual(await volume.uploads.list(), []);
    const aborted = await volume.uploads.create('other', {});
    await volume.uploads.abort(aborted);
    assert.equal(await volume.uploads.find(aborted.id, 'other'), undefined);
  });

  test('is asked again after it ended, and refuses others', async () => {
    await put('folder/file', 'x');
    await stop();
    assert.equal((await volume.objects.head('folder/file'))?.size, 1);
    assert.ok(unreachable <= 1);
    assert.equal(await volume.removeFolder(['folder']), true);
    assert.equal(await volume.removeFolder(['folder']), false);
    token = 'wrong';
    await assert.rejects(volume.objects.head('kept'), { code: 'unauthenticated' });
    token = 'right';
  });
});
