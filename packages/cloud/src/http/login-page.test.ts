import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import Fastify from 'fastify';
import { loginPageRoutes } from './login-page.ts';

const app = Fastify();
before(async () => {
  loginPageRoutes(app);
  await app.ready();
});
after(() => app.close());

test('the page names the request, and runs its own script and no other', async () => {
  const { statusCode, headers, body } = await app.inject('/flash/login?request=abc_DEF-1');
  assert.equal(statusCode, 200);
  assert.match(body, /data-request="abc_DEF-1"/);
  const nonce = /script-src 'nonce-([^']+)'/.exec(String(headers['content-security-policy']))?.[1] ?? '';
  assert.ok(
    nonce.length > 16 && body.includes(`<script nonce="${nonce}">`) && body.split('<script').length === 2,
  );
  assert.match(String(headers['content-security-policy']), /default-src 'none'.*frame-ancestors 'none'/);
  assert.equal(headers['cache-control'], 'no-store');
});

test('what makes no sense is refused, and never shown', async () => {
  for (const query of [
    '',
    '?request=',
    '?request=%22%3E%3Cscript%3Ealert(1)%3C/script%3E',
    `?request=${'a'.repeat(65)}`,
    '?request=a&request=b',
  ]) {
    const { statusCode, body } = await app.inject(`/flash/login${query}`);
    assert.equal(statusCode, 400, query);
    assert.ok(!body.includes('<script') && !body.includes('alert'), query);
  }
});
