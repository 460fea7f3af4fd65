import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { dirname } from 'node:path';
import type { TestContext } from 'node:test';
import { BERTH_COMMAND } from '../../packages/testing/src/berth-command.ts';

/** Nobody waits longer than this without a line that says for what. */
const LONGEST_SILENCE_MS = 2_000;
/** Words that people read in a minute, and words of five characters that they type. */
const READ_PER_MINUTE = 200;
const TYPED_PER_MINUTE = 40;
const CHARACTERS_PER_WORD = 5;
/** Lines that say for what one waits, where it is known to take longer; and what comes after the wait. */
const EXPLANATION = /^(?:installing|building) .*(?:minute|seconds)/m;
const EXPLAINED_STEP_ENDED = /^> /m;
/** `berth --version` on a quiet machine. */
const QUIET_START_MS = 200;

interface Step {
  env?: Record<string, string>;
  cwd?: string;
  input?: string;
  /** It keeps running: the step is over when it has printed this. */
  until?: RegExp;
}

/**
 * A person's steps at a terminal: the time that they read and type, by the words, and that each command takes,
 * with the longest silence within it.
 */
export class Stopwatch {
  readonly #test: TestContext;
  #readMinutes = 0;
  #typedMinutes = 0;
  #waitedMs = 0;

  constructor(test: TestContext) {
    this.#test = test;
  }

  /** They read these parts of a page, code and tables too; '' is the part before the first heading. */
  read(page: string, ...headings: string[]): void {
    const [start = '', ...parts] = readFileSync(page, 'utf8').split(/^## /m);
    for (const heading of headings) {
      const part = heading === '' ? start : parts.find((text) => text.startsWith(`${heading}\n`));
      assert.ok(part !== undefined, `${page} has no part ${heading}`);
      this.#readMinutes += part.split(/\s+/).length / READ_PER_MINUTE;
    }
  }

  /** They write a file of their own. */
  write(file: string, text: string): void {
    this.#typed(text);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  #typed(text: string): void {
    this.#typedMinutes += text.length / CHARACTERS_PER_WORD / TYPED_PER_MINUTE;
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
    this.#typed(command);
    const begun = performance.now();
    const child = spawn('bash', ['--norc', '-ec', until === undefined ? command : `exec ${command}`], {
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...marks(), ...env },
      ...(cwd !== undefined && { cwd }),
      stdio: ['pipe', 'pipe', 'pipe'],
      // npm and what it starts end as one.
      detached: true,
    });
    // A command that reads no input may end before it is written.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input ?? '');
    const ended = once(child, 'close') as Promise<[number | null]>;
    this.#test.after(async () => {
      try {
        process.kill(-(child.pid ?? 0), 'SIGTERM');
      } catch {
        // It has ended.
      }
      await ended;
    });
    let [stdout, all, last, silence, isExplained] = ['', '', begun, 0, false];
    const heard = (text: string): void => {
      all += text;
      if (!isExplained) silence = Math.max(silence, performance.now() - last);
      if (EXPLANATION.test(text)) isExplained = true;
      else if (EXPLAINED_STEP_ENDED.test(text)) isExplained = false;
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
    this.#waitedMs += performance.now() - begun;
    const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
    this.#test.diagnostic(
      `${seconds(performance.now() - begun)}, longest silence ${seconds(silence)}: ` +
        `${command.split('\n')[0]?.slice(0, 90)}`,
    );
    // What people wrote themselves says what it likes.
    if (silence > LONGEST_SILENCE_MS && /^(?:berth|npm) /.test(command))
      assert.ok(
        silence <= LONGEST_SILENCE_MS * slowness(),
        `nothing was said for ${seconds(silence)} in: ${command}\n${all}`,
      );
    return { process: child, stdout };
  }

  /** Reading, typing and all steps together take no longer than this on a machine that does nothing else. */
  assertWithinMinutes(minutes: number): void {
    const here = this.#waitedMs / 60_000;
    const isLate = this.#readMinutes + this.#typedMinutes + here >= minutes;
    const waited = isLate ? here / slowness() : here;
    const parts = Object.entries({ reading: this.#readMinutes, typing: this.#typedMinutes, waiting: waited });
    const said = parts.map(([name, took]) => `${name} ${took.toFixed(1)} min`).join(', ');
    const taken = this.#readMinutes + this.#typedMinutes + waited;
    this.#test.diagnostic(`${taken.toFixed(1)} min in all: ${said}`);
    assert.ok(taken < minutes, `${taken} min: ${said}`);
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
