import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { clientFixture } from '../../../packages/testing/src/client-fixture.ts';
import { runBerth } from '../../../packages/testing/src/berth-command.ts';

const run = promisify(execFile);

describe('rclone on a network volume', () => {
  const fixture = clientFixture();
  let folder: string;
  let volume: string;
  let rclone: (...words: string[]) => Promise<string>;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'berth-rclone-'));
    const { json } = await runBerth<{ accessId: string; secret: string }>(
      ['key', 'create', '--s3', '--name', 'rclone', '--json'],
      { BERTH_URL: fixture.server.url, BERTH_API_KEY: fixture.server.key },
    );
    const made = await fixture.client.call<{ id: string }>('POST', '/v2/network-volumes', {
      name: 'rclone',
      size: 10,
      dataCenter: 'LOCAL-1',
    });
    volume = `berth:${made.body.id}`;
    const env = {
      PATH: process.env['PATH'],
      HOME: folder,
      RCLONE_CONFIG: join(folder, 'rclone.conf'),
      RCLONE_CONFIG_BERTH_TYPE: 's3',
      RCLONE_CONFIG_BERTH_PROVIDER: 'Other',
      RCLONE_CONFIG_BERTH_ENDPOINT: `${fixture.server.url}/s3`,
      RCLONE_CONFIG_BERTH_REGION: 'LOCAL-1',
      RCLONE_CONFIG_BERTH_FORCE_PATH_STYLE: 'true',
      RCLONE_CONFIG_BERTH_ACCESS_KEY_ID: json.accessId,
      RCLONE_CONFIG_BERTH_SECRET_ACCESS_KEY: json.secret,
    };
    rclone = async (...words) => (await run('rclone', [...words, '--retries', '1'], { env })).stdout;
    mkdirSync(join(folder, 'data/sub'), { recursive: true });
    writeFileSync(join(folder, 'data/one.txt'), 'one');
    writeFileSync(join(folder, 'data/sub/zwei €.txt'), 'zwei');
    // Above rclone's limit for one request: it is uploaded in parts.
    writeFileSync(join(folder, 'data/large.bin'), Buffer.alloc(12 << 20, 7));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  test('copies a folder to the volume and finds it the same', async () => {
    await rclone('copy', join(folder, 'data'), `${volume}/data`, '--s3-upload-cutoff', '5M');
    assert.deepEqual(
      (await rclone('lsf', '-R', '--files-only', `${volume}/data`)).trim().split('\n').sort(),
      ['large.bin', 'one.txt', 'sub/zwei €.txt'],
    );
    await rclone('check', '--download', join(folder, 'data'), `${volume}/data`);
  });

  test('syncs deletions, and copies back', async () => {
    rmSync(join(folder, 'data/one.txt'));
    await rclone('sync', join(folder, 'data'), `${volume}/data`);
    assert.doesNotMatch(await rclone('lsf', `${volume}/data`), /one\.txt/);
    await rclone('copy', `${volume}/data`, join(folder, 'back'));
    assert.equal(readFileSync(join(folder, 'back/sub/zwei €.txt'), 'utf8'), 'zwei');
  });

  test('reads a part of a file and deletes a folder', async () => {
    assert.equal(await rclone('cat', '--offset', '1', '--count', '2', `${volume}/data/sub/zwei €.txt`), 'we');
    await rclone('purge', `${volume}/data`);
    assert.equal(await rclone('lsf', volume), '');
  });
});
