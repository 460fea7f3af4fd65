import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, before, describe, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { freePort } from '../../packages/testing/src/free-port.ts';
import { acceleratedPythonSdk } from '../../packages/testing/src/python-sdks.ts';
import { startServerProcess, type ServerProcess } from '../../packages/testing/src/server-process.ts';
import { createTestDatabase, killInstances } from '../../packages/testing/src/test-database.ts';
import { changesTheFirewall, followsForEver, neededCommand, reasonNotRun } from './blocks-not-run.ts';
import { codeBlocks, pageScript, untilItPrints, type CodeBlock } from './code-blocks.ts';
import { deployed, pageScene, SHARED_KEY, SHARED_URL } from './page-scenes.ts';

const PAGE_LIMIT_MS = 180_000;
const run = promisify(execFile);
/** Clients whose packages a page may use, where `npm run test:clients` has installed them. */
const NODE_CLIENTS = ['runpod-sdk', 'openai'];
/** The environment of Python with the AWS clients, which this page uses. */
const AWS_PAGE = 'docs/volumes.md';
const AWS_PROGRAMS = resolve('clients/.installed/aws/bin');
/** A running server holds the lock of its database: the page tells its reader to take a copy. */
const READ_DATABASE = `
import { DatabaseSync } from 'node:sqlite';
import { cpSync, globSync, readFileSync } from 'node:fs';
for (const file of globSync('.berth/berth.db*')) cpSync(file, 'copy-of-' + file);
const database = new DatabaseSync('copy-of-.berth/berth.db');
for (const statement of readFileSync(0, 'utf8').split(';')) if (/\\w/.test(statement)) database.prepare(statement).all();
`;

/** Runs each page as it is written, in a folder like a clone; only the ports are others. */
export function describePages(title: string, pages: readonly string[]): void {
  describe(title, () => {
    let folder: string;
    let server: ServerProcess;
    let receiverPort: number;
    const sdk = acceleratedPythonSdk();
    const path = [...(typeof sdk === 'string' ? [] : [dirname(sdk.python)]), process.env['PATH']].join(':');

    before(async () => {
      folder = makeClone();
      const data = join(folder, '.berth');
      // The page about webhooks tells its reader to allow this.
      server = await startServerProcess({ data, url: '' }, { BERTH_WEBHOOKS_ALLOW_PRIVATE: 'true' });
      if (!existsSync(join(data, 'root.key'))) writeFileSync(join(data, 'root.key'), server.key);
      receiverPort = await freePort();
    });
    after(async () => {
      await server.stop();
      for (const data of globSync('{,*/}{,.}*/berth.db', { cwd: folder }))
        killInstances(join(folder, dirname(data)));
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    });

    for (const page of pages)
      test(page, { timeout: PAGE_LIMIT_MS }, async (t) => {
        const scene = pageScene(page);
        const ownPort = await freePort();
        const env = {
          ...ownEnvironment(),
          PATH: `${join(folder, 'bin')}:${page === AWS_PAGE ? `${AWS_PROGRAMS}:` : ''}${path}`,
          HOME: folder,
          PAGE: page,
          PYTHONPATH: resolve('packages/worker-python/src'),
          REPOSITORY: resolve('.'),
          BERTH_DOCKER: 'off',
          BERTH_GPUS: 'virtual',
          OWN_PORT: `${ownPort}`,
          OWN_DATA: scene.ownServer === true ? '.berth' : join(folder, 'own-data'),
          ...(scene.ownServer !== true && { BERTH_URL: server.url, BERTH_API_KEY: server.key }),
        };
        const has = (command: string): boolean =>
          spawnSync('bash', ['--norc', '-c', command], { cwd: folder, env, stdio: 'ignore' }).status === 0;
        const blocks = codeBlocks(readFileSync(resolve(page), 'utf8')).filter((block) => {
          const missing = neededCommand(page, block);
          if (missing !== undefined && !has(missing)) t.diagnostic(`not run, without: ${missing}`);
          else return reasonNotRun(page, block) === undefined;
          return false;
        });
        let script = pageScript(deployed(blocks, scene).map(runnable), {
          python: 'python3 -',
          js: `"${process.execPath}" --input-type=module -`,
          ts: `"${process.execPath}" --input-type=module-typescript -`,
          sql: `"${process.execPath}" --input-type=module -e "${READ_DATABASE}"`,
        })
          .replaceAll('<this repository>', resolve('.'))
          .replaceAll(
            'http://127.0.0.1:8484',
            scene.ownServer === true ? `http://127.0.0.1:${ownPort}` : server.url,
          );
        for (const [onPage, inTest] of scene.replacements ?? [])
          script = script.replaceAll(
            onPage,
            inTest.replace(SHARED_URL, server.url).replace(SHARED_KEY, server.key),
          );
        if (scene.database !== undefined) script = script.replaceAll(scene.database, await ownDatabase(t));
        script = script.replaceAll('9000', `${receiverPort}`);
        const running = run('bash', ['--norc', '-x', '-c', script], {
          cwd: folder,
          env,
          maxBuffer: 16 << 20,
        });
        running.child.stdin?.end();
        const { stdout, stderr } = await running.catch((error: { stdout: string; stderr: string }) =>
          assert.fail(`a block of ${page} failed:\n${error.stdout}\n${error.stderr}`),
        );
        assert.doesNotMatch(stdout + stderr, /command not found/);
      });
  });
}

async function ownDatabase(t: TestContext): Promise<string> {
  const database = await createTestDatabase('postgres', { empty: true });
  t.after(() => database.drop());
  return database.url;
}

/** Without what would point the programs of a page elsewhere. */
function ownEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(?:AWS|RUNPOD|RCLONE|npm)_/.test(name)),
  );
}

/** The block, changed only where it would follow for ever or touch the machine that runs the tests. */
function runnable(block: CodeBlock): CodeBlock {
  if (followsForEver(block)) return { ...block, text: untilItPrints(block.text) };
  if (changesTheFirewall(block))
    return {
      ...block,
      text: `unshare --net bash -ec "iptables -N DOCKER-USER\n${block.text.replaceAll(/["$]/g, '\\$&')}"\n`,
    };
  return block;
}

/** A folder like a clone after its first start. */
function makeClone(): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-docs-'));
  for (const name of ['examples', 'packages', 'scripts', 'conformance', 'deploy'])
    symlinkSync(resolve(name), join(folder, name));
  mkdirSync(join(folder, 'node_modules'));
  for (const modules of [
    'node_modules',
    ...NODE_CLIENTS.map((name) => `clients/.installed/${name}/node_modules`),
  ])
    for (const name of existsSync(modules) ? readdirSync(modules) : [])
      if (!existsSync(join(folder, 'node_modules', name)))
        symlinkSync(resolve(modules, name), join(folder, 'node_modules', name));
  cpSync('package.json', join(folder, 'package.json'));
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'bin/npx'), npxOf(folder), { mode: 0o755 });
  return folder;
}

/** Runs programs of the clone as npx does, without the second of processor time that npm takes to find them. */
function npxOf(folder: string): string {
  const npx = spawnSync('sh', ['-c', 'command -v npx'], { encoding: 'utf8' }).stdout.trim();
  return `#!/bin/sh
program="${folder}/node_modules/.bin/$1"
[ -x "$program" ] || exec "${npx}" "$@"
shift
exec "$program" "$@"
`;
}
