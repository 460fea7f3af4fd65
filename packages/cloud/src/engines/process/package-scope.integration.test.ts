import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { endPackageScope } from './package-scope.ts';

test('a package.json above the data folder does not change how scripts are loaded', (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-scope-'));
  context.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  const data = join(folder, 'data');
  mkdirSync(data);
  endPackageScope(data);
  endPackageScope(data);
  writeFileSync(join(data, 'old.js'), `console.log(require('node:path').sep);`);
  writeFileSync(join(data, 'new.js'), `import { sep } from 'node:path'; console.log(sep);`);
  for (const script of ['old.js', 'new.js'])
    assert.equal(
      execFileSync(process.execPath, [join(data, script)], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
      '/\n',
    );
});
