import assert from 'node:assert/strict';
import type { ResolveHookContext, ResolveFnOutput } from 'node:module';
import { test } from 'node:test';
import { resolveSource } from '../../bin/resolve-source.js';

const context: ResolveHookContext = {
  conditions: ['node', 'import'],
  importAttributes: {},
  parentURL: import.meta.url,
};
const byNode: ResolveFnOutput = { url: 'resolved:by-node' };
const next = (): ResolveFnOutput => byNode;

test('a source that another one names is found where Node finds it', () => {
  for (const specifier of ['./main.ts', '../support/clock.ts', './commands/up.command.ts'])
    assert.deepEqual(resolveSource(specifier, context, next), {
      url: import.meta.resolve(specifier),
      format: 'module-typescript',
      shortCircuit: true,
    });
});

test('Node resolves packages, other kinds of files, and what the program is started with', () => {
  for (const specifier of ['pg', 'node:fs', './data.json', '.ts', 'package/file.ts', '/absolute/file.ts'])
    assert.equal(resolveSource(specifier, context, next), byNode, specifier);
  assert.equal(resolveSource('./main.ts', { ...context, parentURL: undefined }, next), byNode);
});
