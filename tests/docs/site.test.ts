import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { pageBlock } from './pages.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The build ends with an error where a link leads nowhere. */
test('the documentation builds as a site, with every page and a search index', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-site-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const command = pageBlock('docs/deploy.md', 'BERTH_DOCS_BASE').replace('$PWD/site', folder);
  await promisify(execFile)('bash', ['--norc', '-ec', command], { cwd: ROOT });
  const missing = globSync('**/*.md', { cwd: join(ROOT, 'docs') })
    .map((page) => page.replace(/README\.md$/, 'index.md').replace(/\.md$/, '.html'))
    .filter((page) => !existsSync(join(folder, page)));
  assert.deepEqual(missing, []);
  assert.equal(globSync('assets/chunks/@localSearchIndexroot*.js', { cwd: folder }).length, 1);
});

test('a static host may serve the site below any path', async () => {
  const config = '../../docs/.vitepress/config.ts';
  const baseOf = async (name: string): Promise<string | undefined> =>
    ((await import(`${config}?${name}`)) as { default: { base?: string } }).default.base;
  assert.equal(await baseOf('berth'), '/docs/');
  process.env['BERTH_DOCS_BASE'] = '/';
  assert.equal(await baseOf('root'), '/');
  delete process.env['BERTH_DOCS_BASE'];
});
