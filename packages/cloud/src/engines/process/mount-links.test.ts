import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, test } from 'node:test';
import { BerthError } from '../../support/errors.ts';
import { GpuAllocator } from '../gpu-allocator.ts';
import { HostAllocations } from './host-allocations.ts';
import { createMounts, linkMountsBelow } from './mount-links.ts';

const base = mkdtempSync(join(tmpdir(), 'berth-mounts-'));
after(() => rmSync(base, { recursive: true }));

describe('mounts', () => {
  const [source, other, mountPath] = [
    join(base, 'volume'),
    join(base, 'other-volume'),
    join(base, 'workspace'),
  ];
  let allocations = new HostAllocations(new GpuAllocator());
  let count = 0;
  beforeEach(() => {
    allocations = new HostAllocations(new GpuAllocator());
    for (const path of [source, other, mountPath]) rmSync(path, { recursive: true, force: true });
    mkdirSync(source);
    writeFileSync(join(source, 'file'), 'content');
  });

  function instance(
    from: string,
    path = mountPath,
  ): { id: string; root: string; links: string[]; belowRootOnly: string[]; end: () => void } {
    count += 1;
    const id = `i${count}`;
    const root = join(base, id);
    mkdirSync(root);
    const mounts = createMounts([{ source: from, path }], root, (link) => allocations.isMountLink(link));
    const allocated = { id, gpus: null, ports: [], links: mounts.links };
    allocations.reserve(allocated);
    return { id, root, ...mounts, end: () => allocations.release(allocated) };
  }

  test('are linked at the given path and below the root', () => {
    const { root, links, belowRootOnly, end } = instance(source);
    assert.deepEqual([links, belowRootOnly], [[mountPath], []]);
    assert.equal(readFileSync(join(mountPath, 'file'), 'utf8'), 'content');
    assert.equal(readFileSync(join(root, mountPath, 'file'), 'utf8'), 'content');
    end();
    assert.equal(existsSync(mountPath), false);
    assert.equal(existsSync(join(source, 'file')), true);
  });

  test('a link of one volume at one path is shared until its last instance ends', () => {
    const [first, second] = [instance(source), instance(source)];
    assert.deepEqual(second.links, [mountPath]);
    first.end();
    assert.equal(readlinkSync(mountPath), source);
    second.end();
    assert.equal(existsSync(mountPath), false);
  });

  test('a second volume at the same path is linked below the root only', () => {
    const first = instance(source);
    const second = instance(other);
    assert.deepEqual([second.links, second.belowRootOnly], [[], [mountPath]]);
    assert.equal(readlinkSync(join(second.root, mountPath)), other);
    second.end();
    assert.equal(readlinkSync(mountPath), source);
    first.end();
  });

  test('an existing directory at the path is left alone', () => {
    mkdirSync(mountPath);
    writeFileSync(join(mountPath, 'own'), '');
    const { belowRootOnly, end } = instance(source);
    assert.deepEqual(belowRootOnly, [mountPath]);
    end();
    assert.equal(existsSync(join(mountPath, 'own')), true);
  });

  test('a path that cannot be created is linked below the root only', () => {
    const deep = join(base, 'not', 'there');
    const { root, belowRootOnly, end } = instance(source, deep);
    assert.deepEqual(belowRootOnly, [deep]);
    assert.equal(readFileSync(join(root, deep, 'file'), 'utf8'), 'content');
    end();
  });

  test('paths stay below the root, and the root itself is refused', () => {
    const { root, end } = instance(source, `/../..${mountPath}`);
    assert.equal(readlinkSync(join(root, mountPath)), source);
    end();
    assert.throws(
      () => instance(source, '/'),
      (error) => error instanceof BerthError && error.code === 'rule',
    );
  });

  test('no link below the root is followed', () => {
    const [root, outside] = [join(base, 'root-with-link'), join(base, 'outside')];
    for (const path of [root, outside]) mkdirSync(path);
    symlinkSync(outside, join(root, 'planted'));
    for (const path of ['/planted/x', '/planted/x/y.service.d'])
      assert.throws(
        () => linkMountsBelow([{ source, path }], root),
        (error) => error instanceof BerthError && error.code === 'rule',
      );
    assert.deepEqual(readdirSync(outside), []);
  });
});
