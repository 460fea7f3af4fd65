import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { BerthError } from '../../support/errors.ts';
import type { InstanceEngine } from '../engine.ts';
import type { Execution, InstanceEvent, InstanceSpec } from '../instance.ts';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import { waitFor } from '../../../../testing/src/wait-for.ts';

/** What a driver provides to the suite. */
export interface EngineUnderTest {
  /**
   * A module that exports `openEngine(folder)`. Opening the same folder twice in sequence simulates a restart
   * of Berth.
   */
  module: URL;
  /** An image with a POSIX shell and the usual small commands. */
  shellImage: string;
  /** An image that the engine cannot run. */
  unsupportedImage: string;
  /** A GPU type of which the engine has two, if it has any. */
  gpuTypeId?: string;
  /** A command that listens on the port in $PORT and answers `hello`. */
  listenCommand?: readonly string[];
}

export interface EngineModule {
  openEngine(folder: string): Promise<InstanceEngine>;
}

/** The longest wait on a busy machine. */
const TIMEOUT_MS = 20_000;

export type EngineSuiteFixture = ReturnType<typeof engineSuiteFixture>;

/** An engine and the shell scripts that run on it, the same for processes and containers. */
export function engineSuiteFixture(underTest: EngineUnderTest) {
  let folder = '';
  let engine: InstanceEngine;
  let count = 0;

  async function open(): Promise<void> {
    const { openEngine } = (await import(underTest.module.href)) as EngineModule;
    engine = await openEngine(folder);
  }

  async function setUp(): Promise<void> {
    folder = await mkdtemp(join(tmpdir(), 'berth-engine-'));
    await open();
  }

  async function tearDown(): Promise<void> {
    for (const { id } of await engine.list()) await engine.remove(id);
    assert.deepEqual(await engine.list(), []);
    await engine.close();
    await rm(folder, { recursive: true });
  }

  async function restart(): Promise<void> {
    await engine.close();
    await open();
  }

  function script(commands: string, more: Partial<InstanceSpec> = {}): InstanceSpec {
    count += 1;
    return {
      id: `i${count}`,
      labels: {},
      image: underTest.shellImage,
      command: { entrypoint: ['sh', '-c'], cmd: [commands] },
      env: {},
      ports: [],
      mounts: [],
      cpu: 1,
      memoryInGb: 0.5,
      gpus: null,
      containerDiskInGb: 1,
      ...more,
    };
  }

  async function started(commands: string, more: Partial<InstanceSpec> = {}): Promise<string> {
    const spec = script(commands, more);
    await engine.start(spec);
    return spec.id;
  }

  function lines(id: string, query: LogQuery = {}): Promise<LogLine[]> {
    return Array.fromAsync(engine.logs(id, query));
  }

  /** The output until the instance ends. */
  async function output(id: string): Promise<string[]> {
    return (await lines(id, { follow: true, source: 'container' })).map((line) => line.line);
  }

  /** Resolves when the instance has written this line. */
  async function waitForLine(id: string, wanted: string): Promise<void> {
    for await (const { line } of engine.logs(id, { follow: true }, AbortSignal.timeout(TIMEOUT_MS)))
      if (line === wanted) return;
    assert.fail(
      `${id} never wrote ${wanted}, but ${JSON.stringify((await lines(id)).map((line) => line.line))}`,
    );
  }

  async function ended(id: string): Promise<InstanceEvent> {
    const { promise, resolve } = Promise.withResolvers<InstanceEvent>();
    const unsubscribe = engine.watch((event) => {
      if (event.id === id && event.status === 'exited') resolve(event);
    });
    const known = (await engine.list()).find((instance) => instance.id === id);
    assert.ok(known, `${id} is not known`);
    if (known.status === 'exited')
      resolve({
        id,
        status: 'exited',
        exitCode: known.exitCode,
        signal: known.signal,
        at: known.endedAt ?? 0,
      });
    const event = await promise;
    unsubscribe();
    return event;
  }

  return {
    ...underTest,
    /** A new object after each restart. */
    get engine() {
      return engine;
    },
    get folder() {
      return folder;
    },
    setUp,
    tearDown,
    open,
    restart,
    script,
    started,
    lines,
    output,
    waitForLine,
    ended,
  };
}

export async function runToExit(
  execution: Execution,
): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  execution.stdin.end();
  const [stdout, stderr, { exitCode }] = await Promise.all([
    text(execution.stdout),
    text(execution.stderr),
    execution.exited,
  ]);
  return { exitCode, stdout, stderr };
}

export function hasCode(code: string, message = /./): (error: unknown) => boolean {
  return (error) => error instanceof BerthError && error.code === code && message.test(error.message);
}

/** Resolves with the first result that is neither undefined nor false. */
export async function waitUntil<T>(
  check: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  return waitFor(check.toString(), check, TIMEOUT_MS);
}
