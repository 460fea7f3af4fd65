import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { apiReferencePage, apiReferenceScript, PAGE_HEADERS } from './api-reference-page.ts';

describe('the API reference page', () => {
  const page = apiReferencePage('Harbour & co');

  test('names the document and the script relative to itself, and nothing of another host', () => {
    assert.match(page, /<title>Harbour &amp; co<\/title>/);
    assert.match(page, /<script src="docs\/scalar\.js"><\/script>/);
    assert.match(page, /&quot;url&quot;:&quot;openapi\.json&quot;/);
    assert.doesNotMatch(page, /https?:|\/\//);
  });

  test('may load from and call only its own server', () => {
    const policy = PAGE_HEADERS['content-security-policy'];
    assert.match(policy, /^default-src 'none'; script-src 'self';/);
    assert.match(policy, /connect-src 'self'/);
    assert.doesNotMatch(policy, /https?:|\*|unsafe-eval/);
  });

  test('has its script in this package', async () => {
    const script = gunzipSync(await apiReferenceScript()).toString();
    assert.match(script, /createApiReference/);
  });
});
