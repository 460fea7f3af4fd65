import { execFile, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { BERTH_COMMAND, runBerth } from '../packages/testing/src/berth-command.ts';

const run = promisify(execFile);
const LIMIT_MS = 60_000;

/**
 * Types into a shell on a terminal of its own until it shows what is waited for: shell, file, typed,
 * expected.
 */
const TYPE = `
import os, pty, select, sys, time
shell, setup, typed, expected = sys.argv[1:5]
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "dumb"
    os.execvp(shell, [shell] + sys.argv[5:])
shown = b""
def wait(text):
    global shown
    end = time.monotonic() + 30
    while text.encode() not in shown:
        ready, _, _ = select.select([terminal], [], [], end - time.monotonic())
        if not ready:
            sys.exit("not shown: " + text + "\\n" + shown.decode(errors="replace"))
        shown += os.read(terminal, 65536)
os.write(terminal, (setup + "; echo rea''dy\\n").encode())
wait("ready\\r\\n")
shown = b""
os.write(terminal, typed.encode() + b"\\t\\t")
wait(expected)
os.kill(pid, 9)
`;

const SHELLS = {
  bash: { flags: ['--norc', '--noprofile', '-i'], setup: 'source' },
  zsh: { flags: ['-f', '-i'], setup: 'autoload -U compinit && compinit -u; source' },
  fish: { flags: ['--no-config', '-i'], setup: 'source' },
} as const;

describe('completion in the shells that people have', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-shells-'));
  const env = {
    PATH: [dirname(BERTH_COMMAND), process.env['PATH']].join(delimiter),
    HOME: folder,
    LANG: 'C.UTF-8',
  };
  before(() => writeFileSync(join(folder, 'type.py'), TYPE));
  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const [shell, { flags, setup }] of Object.entries(SHELLS)) {
    const isMissing = spawnSync(shell, ['--version']).status !== 0;
    if (isMissing && process.env['BERTH_REQUIRE_CLIENTS'] !== undefined)
      throw new Error(`there is no ${shell}`);
    test(`${shell} completes commands and options`, {
      skip: isMissing && `there is no ${shell}`,
      timeout: LIMIT_MS,
    }, async () => {
      const file = join(folder, `berth.${shell}`);
      writeFileSync(file, (await runBerth(['completion', shell])).stdout);
      chmodSync(file, 0o644);
      const type = (typed: string, expected: string): Promise<unknown> =>
        run('python3', [join(folder, 'type.py'), shell, `${setup} ${file}`, typed, expected, ...flags], {
          env,
        });
      await type('berth endpoint roll', 'endpoint rollback');
      await type('berth job redr', 'job redrive');
      await type('berth run echo --cancel-on', '--cancel-on-interrupt');
    });
  }
});
