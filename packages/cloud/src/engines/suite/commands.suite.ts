import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { runToExit, hasCode, waitUntil } from './engine-fixture.ts';
import type { EngineFixture } from './engine-fixture.ts';

/** Commands that run beside an instance. */
export function commandTests(stage: EngineFixture): void {
  const { started, said, ended, restart } = stage;

  test('a command runs beside it', async () => {
    const id = await started('echo > here; echo ready; sleep 600', { env: { GREETING: 'hello' } });
    await said(id, 'ready');
    const execution = await stage.engine.exec(
      id,
      ['sh', '-c', 'ls; echo $GREETING $MORE; cat; echo oops >&2; exit 4'],
      { env: { MORE: 'there' } },
    );
    execution.stdin.write('from outside\n');
    assert.deepEqual(await runToExit(execution), {
      exitCode: 4,
      stdout: 'here\nhello there\nfrom outside\n',
      stderr: 'oops\n',
    });
    await restart();
    assert.equal(
      (await runToExit(await stage.engine.exec(id, ['sh', '-c', 'echo $GREETING']))).stdout,
      'hello\n',
    );
    const long = await stage.engine.exec(id, ['sleep', '600']);
    await stage.engine.remove(id);
    assert.notEqual((await long.exited).exitCode, 0);
    await assert.rejects(stage.engine.exec(id, ['true']), hasCode('not-found'));
  });

  test('a command cannot run where nothing runs', async () => {
    const id = await started('exit 0');
    await ended(id);
    await assert.rejects(stage.engine.exec(id, ['true']), hasCode('state'));
  });

  test('a command can have a terminal', async (context) => {
    if (!stage.engine.capabilities.terminal) return context.skip('this engine has none');
    const id = await started('sleep 600');
    const execution = await stage.engine.exec(
      id,
      ['sh', '-c', 'stty size; read go; stty size; tty >/dev/null && echo terminal; exit 6'],
      { tty: { columns: 91, rows: 33 } },
    );
    const shown = text(execution.stdout);
    await execution.resize({ columns: 120, rows: 40 });
    execution.stdin.write('go\n');
    assert.equal((await execution.exited).exitCode, 6);
    const words = (await shown).split(/\r?\n/);
    assert.ok(words.includes('40 120') && words.includes('terminal'), JSON.stringify(words));
    await stage.engine.remove(id);
  });

  test('a command that is ended takes along what it started, in a terminal and without one', async () => {
    const id = await started('sleep 600');
    const ways = stage.engine.capabilities.terminal ? [{}, { tty: { columns: 80, rows: 24 } }] : [{}];
    for (const options of ways) {
      const execution = await stage.engine.exec(
        id,
        ['sh', '-c', 'trap "" HUP TERM; sleep 601 & echo up; wait; wait'],
        options,
      );
      execution.stdout.setEncoding('utf8');
      for await (const shown of execution.stdout) if (String(shown).includes('up')) break;
      execution.kill('SIGKILL');
      const { exitCode } = await execution.exited;
      assert.notEqual(exitCode, 0);
      const look = async (): Promise<string> =>
        (
          await runToExit(
            await stage.engine.exec(
              id,
              [
                'sh',
                '-c',
                'for p in /proc/[0-9]*; do grep -qs "sleep.60[1]" $p/cmdline && grep -qs "$MINE" $p/environ && echo alive; done; true',
              ],
              { env: { MINE: id } },
            ),
          )
        ).stdout;
      await waitUntil(async () => (await look()) === '' || undefined);
    }
    await stage.engine.remove(id);
  });

  test('a command that is not there is refused, in a terminal and without one', async () => {
    const id = await started('sleep 600');
    for (const options of [
      {},
      ...(stage.engine.capabilities.terminal ? [{ tty: { columns: 80, rows: 24 } }] : []),
    ])
      await assert.rejects(
        stage.engine.exec(id, ['no-such-command'], options),
        hasCode('rule', /no-such-command/),
      );
    await stage.engine.remove(id);
  });
}
