import assert from 'node:assert/strict';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { text } from 'node:stream/consumers';
import { findProgram } from './local-images.ts';
import { startExecution } from './process-execution.ts';
import { findPtyProgram } from './pty.ts';
import type { PtyProgram } from './pty.ts';

const PATH = process.env['PATH'] ?? '';

describe('pseudo-terminals', () => {
  test('use script, or else python3, and need stty', async (context) => {
    const folder = await mkdtemp(join(tmpdir(), 'berth-terminals-'));
    context.after(() => rm(folder, { recursive: true }));
    const steps: [string | undefined, PtyProgram | undefined][] = [
      [undefined, undefined],
      ['script', undefined],
      ['stty', 'script'],
    ];
    for (const [program, ptyProgram] of steps) {
      if (program !== undefined) await symlink('/bin/sh', join(folder, program));
      assert.equal(findPtyProgram(folder), ptyProgram);
    }
    await rm(join(folder, 'script'));
    assert.equal(findPtyProgram(folder), undefined);
    await symlink('/bin/sh', join(folder, 'python3'));
    assert.equal(findPtyProgram(folder), 'python3');
  });

  for (const ptyProgram of ['script', 'python3'] as const) {
    test(`${ptyProgram}: echo, size, resize, end of input and exit code`, async (context) => {
      if (
        findPtyProgram() === undefined ||
        !(await findProgram(ptyProgram, '/', PATH).then(
          () => true,
          () => false,
        ))
      )
        return context.skip(`${ptyProgram} is not installed`);
      const parts = { cwd: tmpdir(), env: { PATH }, tty: { columns: 91, rows: 33 }, ptyProgram };
      const { execution } = await startExecution({
        ...parts,
        argv: ['sh', '-c', 'stty size; read go; stty size; read more || echo no more; exit 6'],
      });
      const shown = text(execution.stdout);
      await execution.resize({ columns: 120, rows: 40 });
      execution.stdin.write("it's\n");
      execution.stdin.end();
      assert.deepEqual(await execution.exited, { exitCode: 6, signal: null });
      const lines = (await shown).split(/\r?\n/);
      for (const line of ["it's", '40 120', 'no more'])
        assert.ok(
          lines.some((one) => one.includes(line)),
          JSON.stringify(lines),
        );

      const killed = await startExecution({
        ...parts,
        argv: ['sh', '-c', 'trap "" HUP TERM; echo up; sleep 600'],
      });
      for await (const piece of killed.execution.stdout) if (String(piece).includes('up')) break;
      killed.execution.kill('SIGKILL');
      assert.notEqual((await killed.execution.exited).exitCode, 0);
      await assert.rejects(startExecution({ ...parts, argv: ['no-such-command'] }), /was not found/);
    });
  }
});
