import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { InstanceFolder } from '../instance-folder.ts';
import { buildInstanceView } from './instance-view.ts';

const base = mkdtempSync(join(tmpdir(), 'berth-view-'));
after(() => rmSync(base, { recursive: true }));

const [source, writable] = [join(base, 'volumes', 'one'), join(base, 'python', 'account')];
for (const path of [source, writable]) mkdirSync(path, { recursive: true });
const user = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
let count = 0;

/** Where the volume is mounted, whether it is below the root only, and what the link there leads to. */
function mountAt(path: string): { at: string; belowRootOnly: boolean; link: string } {
  count += 1;
  const folder = new InstanceFolder(join(base, 'instances', String(count)));
  folder.create(user);
  const { belowRootOnly } = buildInstanceView({
    folder,
    user,
    mounts: [{ source, path }],
    readable: [],
    writable: [writable],
    data: base,
    gpus: false,
  });
  const line = readFileSync(folder.fstab, 'utf8')
    .split('\n')
    .map((entry) => entry.split(' '))
    .findLast(([from]) => from === source);
  return {
    at: (line?.[1] ?? '').slice(folder.view.length),
    belowRootOnly: belowRootOnly.length === 1,
    link: readlinkSync(join(folder.root, path)),
  };
}

describe('the mount path of an account', { skip: process.platform !== 'linux' }, () => {
  for (const path of [
    '/workspace',
    '/runpod-volume',
    '/data/models/large',
    '/dev/volume',
    '/run/secrets/own',
  ])
    test(`${path} is the path itself`, () => {
      assert.deepEqual(mountAt(path), { at: path, belowRootOnly: false, link: path });
    });

  const below = { at: source, belowRootOnly: true, link: source };

  for (const path of [
    '/bin',
    '/sbin',
    '/usr/sbin',
    '/usr/berth-planted',
    '/etc',
    '/proc/1',
    '/tmp',
    '/var',
    '/',
  ])
    test(`${path} is not free`, () => {
      if (path === '/') assert.throws(() => mountAt(path));
      else assert.deepEqual(mountAt(path), below);
    });

  test('leads through no link, so that Berth creates nothing in folders of the machine', () => {
    for (const [path, real] of [
      ['/var/run/berth-planted', '/run/berth-planted'],
      ['/bin/berth-planted', '/bin/berth-planted'],
      ['/dev/fd/berth-planted', '/proc/self/fd/berth-planted'],
    ] as const)
      try {
        assert.deepEqual(mountAt(path), below, path);
        assert.equal(lstatSync(real, { throwIfNoEntry: false }), undefined, real);
      } finally {
        if (existsSync('/run/berth-planted')) rmSync('/run/berth-planted', { recursive: true });
      }
  });

  test('is never in a folder that the account can change, whatever it does there meanwhile', async () => {
    const path = join(writable, 'entry');
    const toggle = `const fs = require('node:fs');
      for (let round = 0; ; round += 1) {
        fs.symlinkSync('/usr/sbin', ${JSON.stringify(path)});
        if (round === 0) process.stdout.write('ready');
        fs.rmSync(${JSON.stringify(path)});
      }`;
    const toggler = spawn(process.execPath, ['-e', toggle], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      await once(toggler.stdout, 'data');
      for (let round = 0; round < 150; round += 1) assert.deepEqual(mountAt(path), below);
    } finally {
      toggler.kill('SIGKILL');
      await once(toggler, 'exit');
    }
  });
});

test('an instance sees its folder wherever the data folder is', {
  skip: process.platform !== 'linux',
}, () => {
  for (const place of ['/tmp', '/var/tmp']) {
    const data = mkdtempSync(join(place, 'berth-view-'));
    try {
      const folder = new InstanceFolder(join(data, 'instances', 'one'));
      folder.create(user);
      buildInstanceView({ folder, user, mounts: [], readable: [], writable: [], data, gpus: false });
      const mounts = readFileSync(folder.fstab, 'utf8').split('\n');
      const own = mounts.findIndex((line) => line.startsWith(`${folder.root} ${folder.view}${folder.root} `));
      const above = mounts.findIndex((line) => line.split(' ')[1] === `${folder.view}${place}`);
      assert.ok(own > above, `${place}: ${mounts.join('\n')}`);
    } finally {
      rmSync(data, { recursive: true });
    }
  }
});
