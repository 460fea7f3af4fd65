import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { acceleratedPythonSdk } from '../../packages/testing/src/python-sdks.ts';
import { startServerProcess, type ServerProcess } from '../../packages/testing/src/server-process.ts';
import { killInstances } from '../../packages/testing/src/test-database.ts';
import { codeBlocks, pageScript } from './code-blocks.ts';

const PAGE_LIMIT_MS = 120_000;
const run = promisify(execFile);

/** Runs each page as it is written, in a folder like a clone; only the port is another. */
export function describePages(title: string, pages: readonly string[]): void {
  describe(title, () => {
    let folder: string;
    let server: ServerProcess;
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'berth-docs-'));
      for (const name of ['examples', 'node_modules', 'packages'])
        symlinkSync(resolve(name), join(folder, name));
      writeFileSync(join(folder, 'package.json'), '{"private": true}');
      const data = join(folder, '.berth');
      server = await startServerProcess({ data, url: '' });
      if (!existsSync(join(data, 'root.key'))) writeFileSync(join(data, 'root.key'), server.key);
    });
    after(async () => {
      await server.stop();
      killInstances(join(folder, '.berth'));
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    });

    for (const page of pages)
      test(page, { timeout: PAGE_LIMIT_MS }, async () => {
        const sdk = acceleratedPythonSdk();
        const script = pageScript(codeBlocks(readFileSync(resolve(page), 'utf8')), {
          // Without the public SDK, its blocks are tried where CI has it.
          ...(typeof sdk !== 'string' && { python: `"${sdk.python}" -` }),
          ts: `"${process.execPath}" --input-type=module-typescript -`,
        }).replaceAll('http://127.0.0.1:8484', server.url);
        const { stdout, stderr } = await run('bash', ['-x', '-c', script], {
          cwd: folder,
          env: { ...process.env, BERTH_URL: server.url, BERTH_API_KEY: server.key },
          maxBuffer: 16 << 20,
        }).catch((error: { stdout: string; stderr: string }) =>
          assert.fail(`a block of ${page} failed:\n${error.stdout}\n${error.stderr}`),
        );
        assert.doesNotMatch(stdout + stderr, /command not found/);
      });
  });
}
