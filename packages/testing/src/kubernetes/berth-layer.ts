import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../../../..');
const CLOUD = join(ROOT, 'packages/cloud');
/** Berth from its sources. */
const FILES = [
  'packages/cloud/assets',
  'packages/cloud/bin',
  'packages/cloud/package.json',
  'packages/cloud/src',
  'packages/worker/package.json',
  'packages/worker/src',
  'packages/worker-python/src',
  'node_modules/berth-worker',
];
/** The image has a Node of its own, and nothing is compiled there. */
const UNUSED = /(?:^|\/)node_modules\/(?:node|@types\/.*)$/;

/**
 * A layer of an image with this Berth, as `berth` in the path, and with its Node where
 * deploy/docker/Dockerfile has it. It needs a shell and Node.
 */
export function berthLayer(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'berth-layer-'));
  try {
    for (const path of ['bin', 'opt/berth/node_modules/node/bin', 'data'])
      mkdirSync(join(folder, path), { recursive: true });
    const script = '#!/bin/sh\nexec node /berth/packages/cloud/bin/berth.js "$@"\n';
    writeFileSync(join(folder, 'bin/berth'), script, { mode: 0o755 });
    symlinkSync('/bin/node', join(folder, 'opt/berth/node_modules/node/bin/node'));
    const archive = join(folder, 'layer.tar');
    const common = ['--owner=0', '--group=0', '--sort=name', '--mtime=@0', '--exclude=*.test.ts'];
    execFileSync('tar', ['-cf', archive, ...common, '-C', folder, 'bin/berth', 'opt']);
    execFileSync('tar', ['-rf', archive, ...common, '--mode=0777', '-C', folder, 'data']);
    const files = [...FILES, ...dependencies()];
    execFileSync('tar', ['-rf', archive, ...common, '--transform=s,^,berth/,S', '-C', ROOT, ...files]);
    return readFileSync(archive);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The folders of the packages that the server needs, below the root. */
function dependencies(): string[] {
  const found = new Set<string>();
  const visit = (folder: string): void => {
    const { dependencies: needed = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      dependencies?: Record<string, string>;
    };
    for (const name of Object.keys(needed)) {
      const place = findPackage(name, folder);
      if (UNUSED.test(place) || found.has(place)) continue;
      found.add(place);
      visit(place);
    }
  };
  visit(CLOUD);
  const paths = [...found].map((place) => relative(ROOT, place));
  // Workspaces are named above, and what is inside of another package comes with it.
  return paths.filter(
    (path) => path.includes('node_modules') && !paths.some((other) => path.startsWith(`${other}/`)),
  );
}

function findPackage(name: string, from: string): string {
  for (let folder = from; ; folder = dirname(folder)) {
    const place = join(folder, 'node_modules', name);
    if (existsSync(place)) return realpathSync(place);
    if (folder === ROOT) throw new Error(`${name}, which ${from} needs, is not installed`);
  }
}
