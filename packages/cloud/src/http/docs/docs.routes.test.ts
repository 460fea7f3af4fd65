import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
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
  docsRoutes(app, folder);
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

  test('a site that is not built says how to build it', async () => {
    const clone = Fastify();
    docsRoutes(clone, join(outer, 'nowhere'));
    const answer = await clone.inject({ url: '/docs/', headers: { accept: 'text/html,*/*' } });
    assert.equal(answer.statusCode, 404);
    assert.match(answer.body, /<code>npm run docs:build<\/code>/);
    await clone.close();
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

  test('a clone that has not built it is told how', async () => {
    const empty = Fastify();
    docsRoutes(empty, join(outer, 'missing'));
    assert.match((await empty.inject('/docs/')).body, /npm run docs:build/);
    await empty.close();
  });
});
