import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { runToExit, hasCode, waitUntil } from './engine-suite-fixture.ts';
import type { EngineSuiteFixture } from './engine-suite-fixture.ts';

/** Commands that run in an instance. */
export function commandTests(fixture: EngineSuiteFixture): void {
  const { started, waitForLine, ended, restart } = fixture;

  test('a command runs in the instance', async () => {
    const id = await started('echo > here; echo ready; sleep 600', { env: { GREETING: 'hello' } });
    await waitForLine(id, 'ready');
    const execution = await fixture.engine.exec(
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
      (await runToExit(await fixture.engine.exec(id, ['sh', '-c', 'echo $GREETING']))).stdout,
      'hello\n',
    );
    const long = await fixture.engine.exec(id, ['sleep', '600']);
    await fixture.engine.remove(id);
    assert.notEqual((await long.exited).exitCode, 0);
    await assert.rejects(fixture.engine.exec(id, ['true']), hasCode('not-found'));
  });

  test('a command is refused when the instance does not run', async () => {
    const id = await started('exit 0');
    await ended(id);
    await assert.rejects(fixture.engine.exec(id, ['true']), hasCode('state'));
  });

  test('a command can have a terminal', async (context) => {
    if (!fixture.engine.capabilities.terminal) return context.skip('this engine has no terminals');
    const id = await started('sleep 600');
    const execution = await fixture.engine.exec(
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
    await fixture.engine.remove(id);
  });

  test('killing a command kills what it started, with and without a terminal', async () => {
    const id = await started('sleep 600');
    const modes = fixture.engine.capabilities.terminal ? [{}, { tty: { columns: 80, rows: 24 } }] : [{}];
    for (const options of modes) {
      const execution = await fixture.engine.exec(
        id,
        ['sh', '-c', 'trap "" HUP TERM; sleep 601 & echo up; wait; wait'],
        options,
      );
      execution.stdout.setEncoding('utf8');
      for await (const shown of execution.stdout) if (String(shown).includes('up')) break;
      execution.kill('SIGKILL');
      const { exitCode } = await execution.exited;
      assert.notEqual(exitCode, 0);
      const findSurvivors = async (): Promise<string> =>
        (
          await runToExit(
            await fixture.engine.exec(
              id,
              [
                'sh',
                '-c',
                'for p in /proc/[0-9]*; do grep -qs "sleep.60[1]" $p/cmdline && grep -qs "$MINE" ' +
                  '$p/environ && echo alive; done; true',
              ],
              { env: { MINE: id } },
            ),
          )
        ).stdout;
      await waitUntil(async () => (await findSurvivors()) === '' || undefined);
    }
    await fixture.engine.remove(id);
  });

  test('an unknown command is refused, with and without a terminal', async () => {
    const id = await started('sleep 600');
    for (const options of [
      {},
      ...(fixture.engine.capabilities.terminal ? [{ tty: { columns: 80, rows: 24 } }] : []),
    ])
      await assert.rejects(
        fixture.engine.exec(id, ['no-such-command'], options),
        hasCode('rule', /no-such-command/),
      );
    await fixture.engine.remove(id);
  });
}
