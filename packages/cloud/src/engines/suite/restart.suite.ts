import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { InstanceHandle } from '../instance.ts';
import { runToExit, waitUntil } from './engine-fixture.ts';
import type { EngineFixture } from './engine-fixture.ts';

const ENGINE_PROCESS = fileURLToPath(new URL('killable-engine-process.ts', import.meta.url));

/** What becomes of instances when Berth goes and comes back. */
export function restartTests(stage: EngineFixture): void {
  const { script, said, output, ended, restart, module } = stage;

  test('after a restart everything goes on', async () => {
    const running = script('echo before; while [ ! -e go ]; do sleep 0.02; done; echo after; exit 9', {
      labels: { worker: 'w1' },
    });
    const handle = JSON.parse(JSON.stringify(await stage.engine.start(running))) as InstanceHandle;
    const gone = script('exit 0');
    const goneHandle = await stage.engine.start(gone);
    await stage.engine.remove(gone.id);
    await said(running.id, 'before');
    await restart();
    const instance = await stage.engine.adopt(handle);
    assert.deepEqual(
      [instance?.status, instance?.labels, instance?.handle],
      ['running', { worker: 'w1' }, handle],
    );
    assert.equal(await stage.engine.adopt(goneHandle), undefined);
    assert.deepEqual(await stage.engine.start(running), handle);
    await runToExit(await stage.engine.exec(running.id, ['touch', 'go']));
    assert.equal((await ended(running.id)).exitCode, 9);
    assert.deepEqual(await output(running.id), ['before', 'after']);
  });

  test('when Berth is killed its instances go on, and nothing that they say is lost', async () => {
    await stage.engine.close();
    const source = join(stage.folder, 'meeting-point');
    await mkdir(source);
    const meeting = { mounts: [{ source, path: `/berth-meeting-${process.pid}` }] };
    const at = `at=/berth-meeting-${process.pid}; [ -e $at ] || at=$BERTH_ROOT$at;`;
    const speaking = script(
      `${at} i=0; while [ ! -e $at/go ]; do i=$((i+1)); echo "line $i"; sleep 0.002; done; echo "last $i"; echo > $at/done1; exit 11`,
      meeting,
    );
    const silent = script(
      `${at} while [ ! -e $at/go ]; do sleep 0.01; done; echo unheard; echo > $at/done2; exit 12`,
      meeting,
    );
    const reconciler = spawn(
      process.execPath,
      [ENGINE_PROCESS, module.href, stage.folder, JSON.stringify([speaking, silent])],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const [answer] = (await once(reconciler.stdout, 'data')) as [Buffer];
    const handles = JSON.parse(answer.toString()) as InstanceHandle[];
    reconciler.kill('SIGKILL');
    await once(reconciler, 'exit');
    await stage.open();
    for (const handle of handles) assert.equal((await stage.engine.adopt(handle))?.status, 'running');
    await said(speaking.id, 'line 20');

    // What ends while Berth is away ends unseen.
    await stage.engine.close();
    await writeFile(join(source, 'go'), '');
    await waitUntil(() => existsSync(join(source, 'done1')) && existsSync(join(source, 'done2')));
    await stage.open();
    for (const [index, code] of [11, 12].entries()) {
      const handle = handles[index] as InstanceHandle;
      assert.equal((await ended(handle.id)).exitCode, code);
      const known = await stage.engine.adopt(handle);
      assert.deepEqual([known?.status, known?.exitCode], ['exited', code]);
    }
    assert.deepEqual(await output(silent.id), ['unheard']);
    const spoken = await output(speaking.id);
    const last = Number(spoken.at(-1)?.split(' ')[1]);
    assert.ok(last >= 20, `it ended with ${String(spoken.at(-1))}`);
    assert.deepEqual(spoken, [
      ...Array.from({ length: last }, (_, index) => `line ${index + 1}`),
      `last ${last}`,
    ]);
  });
}
