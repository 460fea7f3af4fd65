import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { formatArgs } from './container-command.ts';

test('a command written without an entrypoint means the same to a real shell', async () => {
  const argument = fc.string({ unit: fc.constantFrom(...`ab'"\\ \t\n{}$;|&*?#~!<>()\`é☃`) });
  await checkProperty(
    fc.property(fc.array(argument, { minLength: 1, maxLength: 5 }), (cmd) => {
      const shell = spawnSync('sh', ['-c', `printf '%s\\0' ${formatArgs({ entrypoint: [], cmd })}`], {
        encoding: 'utf8',
      });
      assert.deepEqual(shell.stdout.split('\0').slice(0, -1), cmd);
    }),
    25,
  );
});
