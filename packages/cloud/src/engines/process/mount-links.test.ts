import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, test } from 'node:test';
import { BerthError } from '../../support/errors.ts';
import { GpuAllocator } from '../gpu-allocator.ts';
import { HostAllocations } from './host-allocations.ts';
import { createMounts } from './mount-links.ts';

const base = mkdtempSync(join(tmpdir(), 'berth-mounts-'));
after(() => rmSync(base, { recursive: true }));

describe('mounts', () => {
  const [source, other, place] = [join(base, 'volume'), join(base, 'other-volume'), join(base, 'workspace')];
  let holdings = new HostAllocations(new GpuAllocator());
  let count = 0;
  beforeEach(() => {
    holdings = new HostAllocations(new GpuAllocator());
    for (const path of [source, other, place]) rmSync(path, { recursive: true, force: true });
    mkdirSync(source);
    writeFileSync(join(source, 'file'), 'content');
  });

  function instance(
    from: string,
    path = place,
  ): { id: string; root: string; links: string[]; belowRootOnly: string[]; end: () => void } {
    count += 1;
    const id = `i${count}`;
    const root = join(base, id);
    mkdirSync(root);
    const made = createMounts([{ source: from, path }], root, (link) => holdings.isMountLink(link));
    const held = { id, gpus: null, ports: [], links: made.links };
    holdings.reserve(held);
    return { id, root, ...made, end: () => holdings.release(held) };
  }

  test('are at the given path and below the root', () => {
    const { root, links, belowRootOnly, end } = instance(source);
    assert.deepEqual([links, belowRootOnly], [[place], []]);
    assert.equal(readFileSync(join(place, 'file'), 'utf8'), 'content');
    assert.equal(readFileSync(join(root, place, 'file'), 'utf8'), 'content');
    end();
    assert.equal(existsSync(place), false);
    assert.equal(existsSync(join(source, 'file')), true);
  });

  test('one volume at one path is shared until the last one is done with it', () => {
    const [first, second] = [instance(source), instance(source)];
    assert.deepEqual(second.links, [place]);
    first.end();
    assert.equal(readlinkSync(place), source);
    second.end();
    assert.equal(existsSync(place), false);
  });

  test('another volume at a path that is taken is below the root alone', () => {
    const first = instance(source);
    const second = instance(other);
    assert.deepEqual([second.links, second.belowRootOnly], [[], [place]]);
    assert.equal(readlinkSync(join(second.root, place)), other);
    second.end();
    assert.equal(readlinkSync(place), source);
    first.end();
  });

  test('what stands at the path already is left alone', () => {
    mkdirSync(place);
    writeFileSync(join(place, 'own'), '');
    const { belowRootOnly, end } = instance(source);
    assert.deepEqual(belowRootOnly, [place]);
    end();
    assert.equal(existsSync(join(place, 'own')), true);
  });

  test('a path that nobody can make is below the root alone', () => {
    const deep = join(base, 'not', 'there');
    const { root, belowRootOnly, end } = instance(source, deep);
    assert.deepEqual(belowRootOnly, [deep]);
    assert.equal(readFileSync(join(root, deep, 'file'), 'utf8'), 'content');
    end();
  });

  test('paths stay inside, and the whole root is none', () => {
    const { root, end } = instance(source, `/../..${place}`);
    assert.equal(readlinkSync(join(root, place)), source);
    end();
    assert.throws(
      () => instance(source, '/'),
      (error) => error instanceof BerthError && error.code === 'rule',
    );
  });
});
