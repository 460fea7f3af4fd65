import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism, loadavg } from 'node:os';
import type { TestContext } from 'node:test';
import { BERTH_COMMAND } from '../../packages/testing/src/berth-command.ts';

/** Nobody waits longer than this without a line that says for what. */
const LONGEST_SILENCE_MS = 2_000;
/** `berth --version` on a quiet machine. */
const QUIET_START_MS = 200;

interface Step {
  env?: Record<string, string>;
  cwd?: string;
  input?: string;
  /** It keeps running: the step is over when it has printed this. */
  until?: RegExp;
}

/** A person's steps at a terminal, with the time of each and the longest silence within it. */
export class Stopwatch {
  readonly #test: TestContext;
  readonly #started = performance.now();

  constructor(test: TestContext) {
    this.#test = test;
  }

  /** Runs a command as it is typed, and answers what it printed to the standard output. */
  async type(command: string, { env = {}, cwd, input, until }: Step = {}): Promise<string> {
    return (await this.#run(command, { env, input, until, ...(cwd !== undefined && { cwd }) })).stdout;
  }

  /** Starts what keeps running; the step is over when it has printed this. */
  async start(
    command: string,
    until: RegExp,
    step: Omit<Step, 'until'> = {},
  ): Promise<{ process: ChildProcess; stdout: string }> {
    return this.#run(command, { ...step, until });
  }

  async #run(
    command: string,
    {
      env,
      cwd,
      input,
      until,
    }: Omit<Step, 'input' | 'until'> & { input?: string | undefined; until?: RegExp | undefined },
  ): Promise<{ process: ChildProcess; stdout: string }> {
    const begun = performance.now();
    const child = spawn('bash', ['-ec', until === undefined ? command : `exec ${command}`], {
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...marks(), ...env },
      ...(cwd !== undefined && { cwd }),
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    child.stdin.end(input ?? '');
    const ended = once(child, 'close') as Promise<[number | null]>;
    this.#test.after(async () => {
      child.kill();
      await ended;
    });
    let [stdout, all, last, silence] = ['', '', begun, 0];
    const heard = (text: string): void => {
      all += text;
      silence = Math.max(silence, performance.now() - last);
      last = performance.now();
    };
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      heard(text);
    });
    child.stderr.setEncoding('utf8').on('data', heard);
    if (until === undefined) {
      const [code] = await ended;
      assert.equal(code, 0, `${command}\n${all}`);
    } else
      while (!until.test(all)) {
        assert.equal(child.exitCode, null, `${command}\n${all}`);
        await Promise.race([once(child.stdout, 'data'), once(child.stderr, 'data'), ended]);
      }
    heard('');
    const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
    this.#test.diagnostic(
      `${seconds(performance.now() - begun)}, longest silence ${seconds(silence)}: ` +
        `${command.split('\n')[0]?.slice(0, 90)}`,
    );
    // What people wrote themselves says what it likes.
    if (silence > LONGEST_SILENCE_MS && command.startsWith('berth '))
      assert.ok(
        silence <= LONGEST_SILENCE_MS * slowness(),
        `nothing was said for ${seconds(silence)} in: ${command}\n${all}`,
      );
    return { process: child, stdout };
  }

  /** All steps together took no longer than this. */
  assertWithinMinutes(minutes: number): void {
    const taken = performance.now() - this.#started;
    this.#test.diagnostic(`${(taken / 1000).toFixed(1)} s in all`);
    assert.ok(taken < minutes * 60_000, `${taken} ms`);
  }
}

/**
 * How much longer than on a quiet machine everything takes now, by the start of the program and by how many
 * processes share a core: that is no silence of Berth's.
 */
function slowness(): number {
  const begun = performance.now();
  spawnSync(BERTH_COMMAND, ['--version']);
  const start = (performance.now() - begun) / QUIET_START_MS;
  return Math.max(1, start) * Math.max(1, (loadavg()[0] ?? 0) / availableParallelism());
}

/** By which a process that a test leaves behind is found. */
function marks(): Record<string, string> {
  return Object.fromEntries(
    ['BERTH_TEST_PROCESS', 'BERTH_CI_RUN'].flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
