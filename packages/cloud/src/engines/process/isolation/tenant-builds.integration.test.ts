import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setPassable } from '../../../support/data-directory.ts';
import { randomIds } from '../../../support/ids.ts';
import type { RunBuildCommand } from '../python/build-command.ts';
import { tenantBuilds } from './tenant-builds.ts';

const user = { uid: 1_900_000_007, gid: 1_900_000_007 };
const signal = new AbortController().signal;

for (const namespaces of [true, false]) {
  describe(`a build of an account, ${namespaces ? 'in namespaces' : 'without namespaces'}`, {
    skip: process.platform !== 'linux' || process.getuid?.() !== 0,
  }, () => {
    let data: string;
    let root: string;
    let home: string;
    let image: string;
    let run: RunBuildCommand;
    before(() => {
      data = mkdtempSync(join(tmpdir(), 'berth-build-'));
      if (!namespaces) setPassable(data, true);
      writeFileSync(join(data, 'root.key'), 'rpa_SECRET', { mode: 0o600 });
      [root, home, image] = [
        join(data, 'python', 'a', 'env'),
        join(data, 'python', 'a', 'home'),
        join(data, 'images', 'a.x', '1'),
      ];
      for (const path of [root, home, image]) mkdirSync(path, { recursive: true, mode: 0o700 });
      writeFileSync(join(image, 'requirements.txt'), 'tiny\n', { mode: 0o600 });
      run = tenantBuilds({
        tenantOf: async (accountId) => (accountId === 'root' ? undefined : { user, namespaces }),
        data,
        readable: () => [],
        ids: randomIds,
      });
    });
    after(() => rmSync(data, { recursive: true }));

    const lines = async (
      script: string,
      owner = 'a',
      cwd = root,
    ): Promise<{ code: number | null; lines: string[] }> => {
      const found: string[] = [];
      const env = { PATH: '/usr/bin:/bin', HOME: home, BERTH_ROOT: root, ODD: "it's" };
      const code = await run(
        { argv: ['/bin/sh', '-c', script], cwd, env, owner, root },
        (line) => found.push(line),
        signal,
      );
      return { code, lines: found };
    };

    test("runs as the account's user, with its environment, and may change its own folders", async () => {
      const ran = await lines('id -u; pwd; echo "$HOME"; echo "$ODD"; touch inside "$HOME/too"; exit 7');
      assert.deepEqual(ran, { code: 7, lines: [String(user.uid), root, home, "it's"] });
      for (const path of [join(root, 'inside'), join(home, 'too')])
        assert.equal(statSync(path).uid, user.uid);
    });

    test('reads its image and does not change it, and reads nothing of Berth', async () => {
      const ran = await lines(
        `cat requirements.txt; touch planted; cat ${join(data, 'root.key')}`,
        'a',
        image,
      );
      assert.ok(
        ran.lines.includes('tiny') && !ran.lines.some((line) => line.includes('rpa_SECRET')),
        ran.lines.join(),
      );
      assert.notEqual(ran.code, 0);
      assert.ok(!existsSync(join(image, 'planted')));
    });

    test('sees the programs that Berth names, not what its own Python links to', async () => {
      const other = mkdtempSync(join(tmpdir(), 'berth-other-'));
      try {
        if (namespaces) chmodSync(other, 0o755);
        for (const name of ['python3', 'uv', 'secret']) writeFileSync(join(other, name), name);
        mkdirSync(join(root, 'bin'));
        symlinkSync(join(other, 'python3'), join(root, 'bin', 'python3'));
        const argv = ['/bin/sh', '-c', `cat ${other}/secret`, join(root, 'bin', 'python3')] as const;
        const command = { argv, cwd: root, env: { PATH: '/usr/bin:/bin', HOME: home }, owner: 'a', root };
        assert.notEqual(await run(command, () => undefined, signal), 0);
        const named = await run({ ...command, programs: [join(other, 'uv')] }, () => undefined, signal);
        assert.equal(named === 0, namespaces);
      } finally {
        rmSync(other, { recursive: true });
      }
    });

    test('leaves nothing behind but its own folders', async () => {
      await lines('true');
      assert.deepEqual(existsSync(join(data, 'builds')) ? readdirSync(join(data, 'builds')) : [], []);
    });

    test('ends with all its processes when it is aborted', async () => {
      const abort = new AbortController();
      const env = { PATH: '/usr/bin:/bin', HOME: home, BERTH_ROOT: root };
      const ran = run(
        { argv: ['/bin/sh', '-c', 'sleep 1000 & echo started; wait'], cwd: root, env, owner: 'a', root },
        () => abort.abort(new Error('enough')),
        abort.signal,
      );
      await assert.rejects(ran, /enough/);
    });

    test("of the root account runs as Berth's own user", async () => {
      chmodSync(root, 0o755);
      assert.deepEqual((await lines('id -u', 'root')).lines, ['0']);
    });
  });
}
