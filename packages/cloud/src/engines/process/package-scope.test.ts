import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { endPackageScope } from './package-scope.ts';

test('a script means the same in a data folder below a package of modules', (context) => {
  const place = mkdtempSync(join(tmpdir(), 'berth-scope-'));
  context.after(() => rmSync(place, { recursive: true }));
  writeFileSync(join(place, 'package.json'), '{"type": "module"}');
  const data = join(place, 'data');
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
