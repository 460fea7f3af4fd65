import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../../../..');
/** What `berth volume serve` and the runner of deployed folders load. */
const FILES = [
  'packages/cloud/bin',
  'packages/cloud/package.json',
  'packages/cloud/src',
  'packages/cloud/node_modules/tar-stream',
  'packages/worker/package.json',
  'packages/worker/src',
  'packages/worker-python/src',
  // What tar-stream needs.
  ...['b4a', 'events-universal', 'fast-fifo', 'streamx', 'text-decoder'].map(
    (name) => `node_modules/${name}`,
  ),
];

/** A layer of an image with this Berth, as `berth` in the path. It needs a shell and Node. */
export function berthLayer(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'berth-layer-'));
  try {
    mkdirSync(join(folder, 'bin'));
    const script = '#!/bin/sh\nexec node /berth/packages/cloud/bin/berth.js "$@"\n';
    writeFileSync(join(folder, 'bin/berth'), script, { mode: 0o755 });
    const archive = join(folder, 'layer.tar');
    const common = ['--owner=0', '--group=0', '--sort=name', '--mtime=@0', '--exclude=*.test.ts'];
    execFileSync('tar', ['-cf', archive, ...common, '-C', folder, 'bin/berth']);
    execFileSync('tar', ['-rf', archive, ...common, '--transform=s,^,berth/,', '-C', ROOT, ...FILES]);
    return readFileSync(archive);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
