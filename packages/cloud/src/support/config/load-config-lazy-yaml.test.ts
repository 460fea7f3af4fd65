import assert from 'node:assert/strict';
import { registerHooks } from 'node:module';
import { test } from 'node:test';
import { loadConfig } from './load-config.ts';

test('the YAML parser is loaded for a file and not before', async () => {
  const resolved: string[] = [];
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      resolved.push(specifier);
      return next(specifier, context);
    },
  });
  await loadConfig({});
  assert.equal(resolved.length, 0);
  await loadConfig({ argv: ['--config', 'berth.yaml'], readFile: () => Promise.resolve('port: 1') });
  assert.ok(resolved.includes('yaml'));
  hooks.deregister();
});
