import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { killInstances } from '../packages/testing/src/test-database.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);
/** The Node versions that handlers are written for. */
const NODE_VERSIONS = ['22', '24'];

const HANDLER = `import { serve, type Job } from 'berth-worker';

interface Input {
  name: string;
}

serve<Input>(async ({ input }: Job<Input>, { progress }) => {
  progress({ percent: 50 });
  return \`hello \${input.name}\`;
});
`;

describe('the published packages, installed outside the repository', { concurrency: true }, () => {
  let folder: string;
  let env: NodeJS.ProcessEnv;
  before(
    async () => {
      folder = mkdtempSync(join(tmpdir(), 'berth-packages-'));
      // Not this repository's programs: npx must find those that are installed here.
      const path = (process.env['PATH'] ?? '')
        .split(':')
        .filter((entry) => !entry.includes('node_modules'))
        .join(':');
      env = { PATH: path, HOME: process.env['HOME'], BERTH_DOCKER: 'off' };
      const pack = ['pack', '-w', 'packages/worker', '-w', 'packages/cloud', '--pack-destination', folder];
      await run('npm', pack, {
        cwd: ROOT,
        env: { ...process.env, BERTH_PACKAGE_FOR_TESTS: '1' },
        maxBuffer: 16 << 20,
      });
      const tarballs = readdirSync(folder)
        .filter((name) => name.endsWith('.tgz'))
        .map((name) => `./${name}`);
      assert.deepEqual(tarballs.map((name) => name.replace(/-\d.*/, '')).sort(), [
        './berth-cloud',
        './berth-worker',
      ]);
      await npmInstall(folder, ['--omit=optional', ...tarballs]);
      mkdirSync(join(folder, 'greeter'));
      writeFileSync(join(folder, 'greeter/handler.ts'), HANDLER);
    },
    { timeout: 350_000 },
  );
  after(() => {
    killInstances(join(folder, 'data'));
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  });

  test('hold compiled code, types and examples, and no sources or tests', () => {
    for (const file of [
      'berth-cloud/dist/cli/main.js',
      'berth-cloud/dist/cli/main.d.ts',
      'berth-cloud/examples/echo/handler.ts',
      'berth-cloud/LICENSE',
      'berth-worker/dist/worker.js',
      'berth-worker/dist/worker.d.ts',
      'berth-worker/LICENSE',
    ])
      assert.ok(existsSync(join(folder, 'node_modules', file)), file);
    for (const name of ['berth-cloud', 'berth-worker']) {
      const files = readdirSync(join(folder, 'node_modules', name), { recursive: true, encoding: 'utf8' });
      assert.deepEqual(
        files.filter((file) => /^src\b|\.(test|suite|fixture)\./.test(file)),
        [],
      );
    }
  });

  test('npx berth-cloud up, a deploy in TypeScript, an example and their jobs', async (context) => {
    const data = join(folder, 'data');
    const server = spawn('npx', ['berth-cloud', 'up', '--port', '0', '--data', data], {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    server.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    while (!output.includes('berth is up at')) await once(server.stdout, 'data');
    const { pid } = JSON.parse(readFileSync(join(data, 'server.json'), 'utf8')) as { pid: number };
    const exited = once(server, 'exit');
    context.after(async () => {
      process.kill(pid, 'SIGTERM');
      await exited;
    });
    const url = /berth is up at (\S+)/.exec(output)?.[1] ?? '';
    await assertServesConsole(url);
    const berth = async (...args: string[]): Promise<Record<string, unknown>> => {
      const clientEnv = {
        ...env,
        BERTH_URL: url,
        BERTH_API_KEY: readFileSync(join(data, 'root.key'), 'utf8').trim(),
      };
      const program = join(folder, 'node_modules/.bin/berth');
      const { stdout } = await run(program, [...args, '--json'], { cwd: folder, env: clientEnv });
      return JSON.parse(stdout) as Record<string, unknown>;
    };
    await berth('deploy', 'greeter', '--name', 'greeter');
    const { status, output: greeting } = await berth('run', 'greeter', '{"name": "Ada"}', '--sync');
    assert.deepEqual([status, greeting], ['COMPLETED', 'hello Ada']);
    // An example by its image name runs from node_modules, where Node strips no types.
    await berth('deploy', 'local/echo', '--name', 'echo');
    const echoed = await berth('run', 'echo', '{"n": 1}', '--sync');
    assert.deepEqual([echoed['status'], echoed['output']], ['COMPLETED', { n: 1 }]);
  });

  for (const version of NODE_VERSIONS)
    test(`a handler type-checks and runs on Node ${version}`, { timeout: 120_000 }, async () => {
      const modules = await installNode(version);
      const node = join(modules, 'node/bin/node');
      assert.match((await run(node, ['--version'])).stdout, new RegExp(`^v${version}\\.`));
      const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
      const project = join(folder, `greeter-${version}`);
      const handler = join(project, 'handler.ts');
      mkdirSync(project);
      writeFileSync(handler, HANDLER);
      writeFileSync(join(project, 'wrong.ts'), HANDLER.replace('input.name', 'input.nickname'));
      writeFileSync(
        join(project, 'tsconfig.json'),
        JSON.stringify({
          compilerOptions: {
            noEmit: true,
            strict: true,
            module: 'nodenext',
            target: 'es2023',
            types: ['node'],
            typeRoots: [join(modules, '@types')],
          },
        }),
      );
      // Of the two, only the wrong one has an error.
      await assert.rejects(run(node, [tsc], { cwd: project }), ({ stdout }: { stdout: string }) => {
        const errors = stdout.split('\n').filter((line) => /error TS/.test(line));
        assert.equal(errors.length, 1, stdout);
        assert.match(errors[0] ?? '', /wrong\.ts.*nickname/);
        return true;
      });
      // A local run: the input comes from a file and the result goes to the log.
      writeFileSync(join(project, 'test_input.json'), '{"input": {"name": "Ada"}}');
      const { stdout, stderr } = await run(node, [handler], { cwd: project, env });
      assert.match(stdout + stderr, /hello Ada/);
    });

  /** A folder of packages with this version of Node and its types: the repository's own, or one kept in its cache. */
  async function installNode(version: string): Promise<string> {
    if (process.version.startsWith(`v${version}.`)) return join(ROOT, 'node_modules');
    const kept = join(ROOT, `node_modules/.cache/node-${version}`);
    if (!existsSync(kept)) {
      const place = mkdtempSync(`${kept}.`);
      await npmInstall(place, [`node@${version}`, `@types/node@${version}`]);
      renameSync(place, kept);
    }
    return join(kept, 'node_modules');
  }

  /** What an earlier installation has downloaded is not asked for again. */
  async function npmInstall(cwd: string, words: string[]): Promise<void> {
    writeFileSync(join(cwd, 'package.json'), '{"private": true, "type": "module"}');
    await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', ...words], {
      cwd,
      env: { ...process.env, PATH: env['PATH'] },
      maxBuffer: 16 << 20,
    });
  }
});

/** The console is part of the package: its first page, and the script that the page loads. */
async function assertServesConsole(url: string): Promise<void> {
  const page = await fetch(`${url}/login`, { headers: { accept: 'text/html' } });
  assert.equal(page.status, 200);
  assert.match(page.headers.get('content-security-policy') ?? '', /script-src/);
  const script = /<script [^>]*src="([^"]+\.js)"/.exec(await page.text())?.[1];
  assert.ok(script !== undefined, 'the page loads no script');
  const loaded = await fetch(new URL(script, url));
  assert.equal(loaded.status, 200);
  assert.match(loaded.headers.get('content-type') ?? '', /javascript/);
  assert.ok((await loaded.text()).length > 10_000, 'the script is not the built console');
}
