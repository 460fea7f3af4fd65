import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ManualClock } from '../../../support/clock.ts';
import { randomIds } from '../../../support/ids.ts';
import { UvProgram } from './uv-program.ts';

/** A Python whose pip installs this program as uv. */
const PYTHON = `#!/bin/sh
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/bin"
echo '#!/bin/sh' > "$2/bin/uv"
`;

test('a cancelled build does not keep the next one from installing uv', async (t) => {
  const path = mkdtempSync(join(tmpdir(), 'berth-uv-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  const python = join(path, 'python3');
  writeFileSync(python, PYTHON);
  chmodSync(python, 0o755);
  const uv = new UvProgram({ path, home: undefined, clock: new ManualClock(), ids: randomIds });
  const interpreter = { path: python, version: '3.12.4', platform: 'linux-x86_64' };
  const ensure = (signal: AbortSignal): Promise<string | undefined> =>
    uv.ensure(interpreter, () => undefined, signal);

  assert.equal(await ensure(AbortSignal.abort()), undefined);
  assert.equal(await ensure(new AbortController().signal), join(path, '.uv/bin/uv'));
});
