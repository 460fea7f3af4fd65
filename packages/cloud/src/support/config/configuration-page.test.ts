import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { configurationPage } from './configuration-page.ts';

test('docs/configuration.md is up to date; if not: node scripts/write-configuration-page.ts', () => {
  const page = readFileSync(new URL('../../../../../docs/configuration.md', import.meta.url), 'utf8');
  assert.ok(page === configurationPage(), 'run: node scripts/write-configuration-page.ts');
});
