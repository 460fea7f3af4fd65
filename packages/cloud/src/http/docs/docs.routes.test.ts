import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import Fastify from 'fastify';
import { docsRoutes } from './docs.routes.ts';

describe('the documentation at /docs', () => {
  const outer = mkdtempSync(join(tmpdir(), 'berth-docs-routes-'));
  const folder = join(outer, 'site');
  mkdirSync(join(folder, 'clients'), { recursive: true });
  mkdirSync(join(folder, 'assets'));
  for (const [name, text] of [
    ['site/index.html', 'home'],
    ['site/jobs.html', 'jobs'],
    ['site/clients/s3.html', 's3'],
    ['site/404.html', 'not here'],
    ['site/assets/app.Ab1-c.js', 'script'],
    ['secret.html', 'hidden'],
  ] as const)
    writeFileSync(join(outer, name), text);
  const app = Fastify();
  docsRoutes(app, { site: folder });
  test.after(async () => {
    await app.close();
    rmSync(outer, { recursive: true });
  });

  const pages: [path: string, status: number, body: string][] = [
    ['/docs/', 200, 'home'],
    ['/docs/jobs', 200, 'jobs'],
    ['/docs/jobs.html', 200, 'jobs'],
    ['/docs/clients/s3', 200, 's3'],
    ['/docs/clients', 404, 'not here'],
    ['/docs/unknown', 404, 'not here'],
  ];
  for (const [path, status, body] of pages)
    test(`${path} is ${status}`, async () => {
      const answer = await app.inject(path);
      assert.deepEqual([answer.statusCode, answer.body], [status, body]);
      assert.match(String(answer.headers['content-security-policy']), /default-src 'none'/);
    });

  test('/docs leads to /docs/', async () => {
    const answer = await app.inject('/docs');
    assert.deepEqual([answer.statusCode, answer.headers.location], [308, '/docs/']);
  });

  test('files with a hash in their name are kept by browsers', async () => {
    const { headers } = await app.inject('/docs/assets/app.Ab1-c.js');
    assert.match(String(headers['cache-control']), /immutable/);
    assert.match(String(headers['content-type']), /^text\/javascript/);
  });

  for (const path of [
    '/docs/../secret.html',
    '/docs/%2e%2e/secret.html',
    '/docs/..%2fsecret.html',
    '/docs//etc/passwd',
  ])
    test(`no path leads out of the folder: ${path}`, async () => {
      const answer = await app.inject(path);
      assert.equal(answer.statusCode >= 400, true);
      assert.doesNotMatch(answer.body, /hidden/);
    });
});

describe('the documentation of a clone at /docs', () => {
  const folder = fileURLToPath(new URL('../../../../../docs', import.meta.url));
  const app = Fastify();
  docsRoutes(app, { markdown: folder });
  test.after(() => app.close());
  const page = async (path: string, status = 200): Promise<string> => {
    const { statusCode, body, headers } = await app.inject(path);
    assert.equal(statusCode, status, path);
    assert.match(String(headers['content-security-policy']), /default-src 'none'/);
    return body;
  };
  const linksOf = (html: string): string[] =>
    [...html.matchAll(/<a [^>]*href="([^"]+)"/g)].map(([, link = '']) => link);

  test('its start page leads to the quick start, and that shows the first command', async () => {
    assert.ok(linksOf(await page('/docs/')).includes('/docs/quick-start'));
    assert.match(await page('/docs/quick-start'), /<h1 [^>]*>.*Quick start.*<\/h1>[\s\S]*npm start/);
  });

  test('every page is in the navigation, and every link leads to a page and a heading of it', async () => {
    const start = linksOf(await page('/docs/')).filter((link) => link.startsWith('/docs/'));
    const pages = new Map<string, string>();
    for (const link of start) pages.set(link, await page(link));
    const sources = (readdirSync(folder, { recursive: true }) as string[]).filter(
      (name) => name.endsWith('.md') && !name.includes('node_modules') && name !== 'index.md',
    );
    for (const name of sources) assert.ok(pages.has(`/docs/${name.replace(/\.md$/, '')}`), name);
    const problems: string[] = [];
    for (const [from, html] of pages)
      for (const link of linksOf(html).filter((target) => !/^[a-z]+:/.test(target))) {
        const { pathname, hash } = new URL(link, `http://berth${from}`);
        if (!pathname.startsWith('/docs/') || pathname === '/docs/') continue;
        const target = pages.get(pathname);
        if (
          target === undefined ||
          (hash !== '' && !target.includes(` id="${decodeURIComponent(hash.slice(1))}"`))
        )
          problems.push(`${from}: ${link}`);
      }
    assert.deepEqual(problems, []);
  });

  test('words are searched in all pages, and markup in them is text', async () => {
    const found = await page('/docs/search?q=metrics.listen');
    assert.ok(linksOf(found).includes('/docs/configuration#metricslisten'));
    assert.match(await page('/docs/search?q=<b>nowhere'), /No page has &lt;b&gt;nowhere\./);
    assert.match(await page('/docs/unknown', 404), /No such page/);
  });
});
