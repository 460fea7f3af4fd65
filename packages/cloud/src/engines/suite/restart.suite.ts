import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { InstanceHandle } from '../instance.ts';
import { runToExit, waitUntil } from './engine-suite-fixture.ts';
import type { EngineSuiteFixture } from './engine-suite-fixture.ts';

const ENGINE_PROCESS = fileURLToPath(new URL('killable-engine-process.ts', import.meta.url));

/** Instances across restarts and crashes of Berth. */
export function restartTests(fixture: EngineSuiteFixture): void {
  const { script, waitForLine, output, ended, restart, module } = fixture;

  test('instances continue after a restart', async () => {
    const running = script('echo before; while [ ! -e go ]; do sleep 0.02; done; echo after; exit 9', {
      labels: { worker: 'w1' },
    });
    const handle = JSON.parse(JSON.stringify(await fixture.engine.start(running))) as InstanceHandle;
    const gone = script('exit 0');
    const goneHandle = await fixture.engine.start(gone);
    await fixture.engine.remove(gone.id);
    await waitForLine(running.id, 'before');
    await restart();
    const instance = await fixture.engine.adopt(handle);
    assert.deepEqual(
      [instance?.status, instance?.labels, instance?.handle],
      ['running', { worker: 'w1' }, handle],
    );
    assert.equal(await fixture.engine.adopt(goneHandle), undefined);
    assert.deepEqual(await fixture.engine.start(running), handle);
    await runToExit(await fixture.engine.exec(running.id, ['touch', 'go']));
    assert.equal((await ended(running.id)).exitCode, 9);
    assert.deepEqual(await output(running.id), ['before', 'after']);
  });

  test('instances survive a kill of Berth, and no output is lost', async () => {
    await fixture.engine.close();
    const source = join(fixture.folder, 'shared-mount');
    await mkdir(source);
    const sharedMount = { mounts: [{ source, path: `/berth-shared-${process.pid}` }] };
    const at = `at=/berth-shared-${process.pid}; [ -e $at ] || at=$BERTH_ROOT$at;`;
    const writing = script(
      `${at} i=0; while [ ! -e $at/go ]; do i=$((i+1)); echo "line $i"; sleep 0.002; done; echo "last ` +
        '$i"; echo > $at/done1; exit 11',
      sharedMount,
    );
    const silent = script(
      `${at} while [ ! -e $at/go ]; do sleep 0.01; done; echo unheard; echo > $at/done2; exit 12`,
      sharedMount,
    );
    const engineProcess = spawn(
      process.execPath,
      [ENGINE_PROCESS, module.href, fixture.folder, JSON.stringify([writing, silent])],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const [answer] = (await once(engineProcess.stdout, 'data')) as [Buffer];
    const handles = JSON.parse(answer.toString()) as InstanceHandle[];
    engineProcess.kill('SIGKILL');
    await once(engineProcess, 'exit');
    await fixture.open();
    for (const handle of handles) assert.equal((await fixture.engine.adopt(handle))?.status, 'running');
    await waitForLine(writing.id, 'line 20');

    // These instances end while Berth is not running.
    await fixture.engine.close();
    await writeFile(join(source, 'go'), '');
    await waitUntil(() => existsSync(join(source, 'done1')) && existsSync(join(source, 'done2')));
    await fixture.open();
    for (const [index, code] of [11, 12].entries()) {
      const handle = handles[index] as InstanceHandle;
      assert.equal((await ended(handle.id)).exitCode, code);
      const known = await fixture.engine.adopt(handle);
      assert.deepEqual([known?.status, known?.exitCode], ['exited', code]);
    }
    assert.deepEqual(await output(silent.id), ['unheard']);
    const written = await output(writing.id);
    const last = Number(written.at(-1)?.split(' ')[1]);
    assert.ok(last >= 20, `it ended with ${String(written.at(-1))}`);
    assert.deepEqual(written, [
      ...Array.from({ length: last }, (_, index) => `line ${index + 1}`),
      `last ${last}`,
    ]);
  });
}
