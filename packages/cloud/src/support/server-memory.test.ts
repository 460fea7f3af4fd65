import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

const SCRIPT = readFileSync(new URL('../../bin/berth', import.meta.url), 'utf8');

/** What a program prints in a process with the options that `bin/berth` gives to the server. */
async function runAsServer(program: string): Promise<number> {
  const options = /^flags="(.+)"$/m.exec(SCRIPT)?.[1]?.split(' ');
  assert.ok(options !== undefined);
  // From a file: a thread inherits the options of one that is given in them, and does not start.
  const folder = mkdtempSync(join(tmpdir(), 'berth-memory-'));
  try {
    const file = join(folder, 'program.mjs');
    writeFileSync(file, program);
    const { stdout } = await promisify(execFile)(process.execPath, [...options, file]);
    return Number(stdout);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('what is received does not begin a collection of the whole heap for every 64 MB', async () => {
  // 1 GB in pieces, of which 80 MB are kept at a time, as bodies of a flood are.
  const collections = await runAsServer(`
    import { constants, PerformanceObserver } from 'node:perf_hooks';
    let collections = 0;
    const count = (list) => list.getEntries().forEach(({ detail }) => {
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) collections += 1;
    });
    const observer = new PerformanceObserver(count);
    observer.observe({ entryTypes: ['gc'] });
    const kept = [];
    for (let piece = 0; piece < 2000; piece += 1) {
      kept[piece % 160] = Buffer.allocUnsafeSlow(512 * 1024).fill(1);
      if (piece % 16 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    const records = observer.takeRecords();
    count({ getEntries: () => records });
    console.log(collections);
  `);
  assert.ok(collections <= 7, `${collections} collections`);
});

test('the thread for checksums gives the memory of a piece back at once', async () => {
  const url = new URL('stream-checksums.ts', import.meta.url).href;
  const megabytes = await runAsServer(`
    import { StreamChecksums, endChecksumThread } from ${JSON.stringify(url)};
    const before = process.memoryUsage().rss;
    const checksums = new StreamChecksums(['sha256']);
    for (let piece = 0; piece < 600; piece += 1) await checksums.update(Buffer.alloc(1024 ** 2, piece));
    await checksums.digests();
    console.log((process.memoryUsage().rss - before) / 1e6);
    await endChecksumThread();
  `);
  assert.ok(megabytes < 300, `${megabytes} MB more`);
});
