import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '../../support/clock.ts';
import { fromWall } from '../../support/clock.ts';
import type { LogLimits } from '../../domain/limits.ts';
import { CpuMeter } from '../cpu-meter.ts';
import { signalOf } from '../exit-code.ts';
import type {
  InstanceAddress,
  Execution,
  ExecutionOptions,
  Instance,
  InstanceHandle,
  InstanceUsage,
} from '../instance.ts';
import type { WritableDisk, VolumeSizeReader } from '../disk-guard.ts';
import { SegmentedLog } from '../logs/segmented-log.ts';
import { joinCgroup, removeCgroup } from './cgroups.ts';
import { type CommandTarget, startInstanceCommand, waitForSandbox } from './instance-command.ts';
import type { InstanceFolder, SavedInstance, StartedProcesses } from './instance-folder.ts';
import { findListeningSocket } from './listening-sockets.ts';
import {
  type ProcessSelector,
  killInstanceProcesses,
  isAlive,
  recentInstanceProcesses,
  findInstanceProcesses,
  sendSignal,
} from './instance-processes.ts';
import { sampleResources } from './resource-sample.ts';
import { throttle } from '../../support/throttle.ts';
import { processDisks } from './process-disk.ts';
import { bootId } from './process-table.ts';
import { OutputSpool } from './output-spool.ts';
import { watchFolder } from './watch-folder.ts';

/** How long a found address is cached. */
const ADDRESS_CACHE_TTL_MS = 1000;
/** Batches many small writes. */
const CAPTURE_INTERVAL_MS = 10;
/** How often it is reported that the log cannot be written. */
const CAPTURE_PROBLEM_INTERVAL_MS = 60_000;
/** The longest delay of a timer. */
const MAX_GRACE_MS = 2 ** 31 - 1;
/** How long the log of an ended instance waits for its last output. */
const OUTPUT_TIMEOUT_MS = 10_000;
const OUTPUT_POLL_MS = 2;

export interface ProcessInstanceOptions {
  saved: SavedInstance;
  folder: InstanceFolder;
  logFolder: string;
  logLimits: LogLimits;
  clock: Clock;
  volumeSize?: VolumeSizeReader | undefined;
  started: StartedProcesses;
  /** Known if this process started the instance; otherwise it is read from the kernel. */
  env?: Readonly<Record<string, string>>;
  /** Called when no process of the instance is left. */
  onEnded: (instance: ProcessInstance) => void;
  /** Called with failures that no caller waits for. */
  onProblem: (what: string, error: unknown) => void;
}

/** One run of an instance, from the moment its process exists. */
export class ProcessInstance {
  readonly saved: SavedInstance;
  readonly folder: InstanceFolder;
  readonly #deps: ProcessInstanceOptions;
  readonly #exited = Promise.withResolvers<void>();
  readonly #cpu: CpuMeter;
  #capture: { log: SegmentedLog; spool: OutputSpool; watcher: { close(): void } } | undefined;
  #exit: { exitCode: number | null; at: number } | undefined;
  #isEnding = false;
  #captureFailedAt = -Infinity;
  #stopping = false;
  #killAt = Infinity;
  #killTimer: NodeJS.Timeout | undefined;
  #addressCache = new Map<number, { address: InstanceAddress; until: number }>();

  constructor(options: ProcessInstanceOptions) {
    this.saved = options.saved;
    this.folder = options.folder;
    this.#deps = options;
    this.#cpu = new CpuMeter(
      options.env === undefined ? sampleResources(this.#selector).cpuSeconds : 0,
      performance.now(),
    );
    // A failed stop is reported to the callers of stop().
    this.#exited.promise.catch(() => undefined);
  }

  get id(): string {
    return this.saved.id;
  }

  get isRunning(): boolean {
    return this.#exit === undefined;
  }

  get isStopping(): boolean {
    return this.#stopping;
  }

  /** Resolves when no process of the instance is left. */
  get gone(): Promise<void> {
    return this.#exited.promise;
  }

  get supervisorIsAlive(): boolean {
    return isAlive(this.#deps.started.supervisor);
  }

  get handle(): InstanceHandle {
    const { supervisor } = this.#deps.started;
    return {
      engine: 'process',
      id: this.id,
      state: {
        run: this.saved.run,
        pid: supervisor.pid,
        startTicks: supervisor.startTicks,
        bootId: this.saved.bootId,
      },
    };
  }

  describe(): Instance {
    const { id, labels, image, startedAt } = this.saved;
    const exitCode = this.#exit?.exitCode ?? null;
    return {
      id,
      labels,
      image,
      handle: this.handle,
      status: this.isRunning ? 'running' : 'exited',
      startedAt,
      endedAt: this.#exit?.at ?? null,
      exitCode,
      signal: signalOf(exitCode),
    };
  }

  /** Copies its output to this log from now on. */
  captureOutput(log: SegmentedLog): void {
    const spool = this.#newSpool(log);
    const drain = throttle(async () => {
      try {
        await spool.drain();
      } catch (error) {
        // On a full disk every line fails; the output writer keeps the newest meanwhile.
        if (performance.now() - this.#captureFailedAt < CAPTURE_PROBLEM_INTERVAL_MS) return;
        this.#captureFailedAt = performance.now();
        this.#deps.onProblem(`the output of ${this.id} could not be written to its log`, error);
      }
    }, CAPTURE_INTERVAL_MS);
    this.#capture = { log, spool, watcher: watchFolder(this.folder.output, drain) };
    drain();
    void this.#joinCgroup().catch((error: unknown) =>
      this.#deps.onProblem(`${this.id} could not be moved to its cgroup`, error),
    );
  }

  #newSpool(log: SegmentedLog): OutputSpool {
    const { clock, logLimits } = this.#deps;
    const { output: folder } = this.folder;
    return new OutputSpool({
      folder,
      run: this.saved.run,
      log,
      clock,
      bytesPerSecond: logLimits.bytesPerSecond,
    });
  }

  /** Completes the log and the exit state of a run that ended while Berth was not running. */
  async finalize(): Promise<void> {
    this.#isEnding = true;
    if (this.folder.hasOutput()) {
      const log = await SegmentedLog.open(this.#deps.logFolder, this.#deps.logLimits.bytes);
      this.#capture = { log, spool: this.#newSpool(log), watcher: { close: () => undefined } };
    }
    await this.#finalizeExit();
  }

  /** Call when the supervisor has ended. */
  async onSupervisorExit(): Promise<void> {
    if (this.#isEnding) return;
    this.#isEnding = true;
    await this.#finalizeExit();
  }

  async #finalizeExit(): Promise<void> {
    clearTimeout(this.#killTimer);
    // Another server has restarted the instance: its processes belong to the new run.
    if (this.folder.readSaved()?.run !== this.saved.run) return this.#detach();
    const exit = this.folder.readExit();
    const { clock } = this.#deps;
    const endedAt = exit === undefined ? clock.now() : fromWall(clock, exit.at);
    try {
      await killInstanceProcesses(this.#selector);
      await this.#closeLog(exit?.exitCode ?? null);
    } catch (error) {
      this.#deps.onProblem(`${this.id} has ended, but not everything about it could be cleaned up`, error);
    }
    if (this.saved.cgroup !== null) removeCgroup(this.saved.cgroup);
    this.#exit = { exitCode: exit?.exitCode ?? null, at: endedAt };
    this.#deps.onEnded(this);
    this.#exited.resolve();
  }

  async #detach(): Promise<void> {
    this.#capture?.watcher.close();
    await this.#capture?.spool.close();
    await this.#capture?.log.end();
    this.#capture = undefined;
    this.#exit = { exitCode: null, at: this.#deps.clock.now() };
    this.#deps.onEnded(this);
    this.#exited.resolve();
  }

  async #closeLog(exitCode: number | null): Promise<void> {
    if (this.#capture === undefined) return;
    const { log, spool, watcher } = this.#capture;
    watcher.close();
    await this.#waitForOutput();
    await spool.finish();
    await log.append([this.#systemLine(exitMessage(exitCode))]);
    await log.end();
    this.folder.deleteOutput();
    this.#capture = undefined;
  }

  /** Until the output writer has written all: it ends after the last process that has the pipe. */
  async #waitForOutput(): Promise<void> {
    if (this.saved.bootId !== bootId()) return;
    for (let waited = 0; waited < OUTPUT_TIMEOUT_MS && this.folder.isOutputOpen(); waited += OUTPUT_POLL_MS)
      await pause(OUTPUT_POLL_MS);
  }

  async stop(graceMs: number): Promise<void> {
    if (this.isRunning) {
      if (!this.#stopping) {
        this.#stopping = true;
        this.logSystemLine(`Asked to end, within ${graceMs / 1000} s.`).catch((error: unknown) =>
          this.#deps.onProblem(`the log of ${this.id} could not be written`, error),
        );
        this.#sendTermination();
      }
      this.#killWithin(Math.min(graceMs, MAX_GRACE_MS));
      await this.gone;
    }
    await this.#clearFolder();
  }

  /**
   * Files that cannot be deleted do not fail the stop. They are deleted with the folder, at the next start or
   * removal.
   */
  async #clearFolder(): Promise<void> {
    try {
      await this.folder.clear();
    } catch (error) {
      this.#deps.onProblem(`the container disk of ${this.id} could not be deleted`, error);
    }
  }

  /**
   * The first process of a namespace gets no signal that it does not handle, and the command is not there yet
   * while the sandbox is made: a signal would be lost.
   */
  #sendTermination(): void {
    if (this.saved.namespaces !== true) return this.#terminateGroup();
    waitForSandbox(this.#commandTarget)
      .catch(() => undefined)
      .then(() => this.#terminateGroup())
      .catch((error: unknown) => this.#deps.onProblem(`${this.id} could not be asked to end`, error));
  }

  #terminateGroup(): void {
    const { child } = this.#deps.started;
    // Right after the fork it is not a group leader yet.
    if (isAlive(child) && !sendSignal(-child.pid, 'SIGTERM')) sendSignal(child.pid, 'SIGTERM');
  }

  #killWithin(milliseconds: number): void {
    const at = performance.now() + milliseconds;
    if (at >= this.#killAt || this.#isEnding) return;
    this.#killAt = at;
    clearTimeout(this.#killTimer);
    this.#killTimer = setTimeout(
      () => void killInstanceProcesses(this.#selector).catch((error: unknown) => this.#exited.reject(error)),
      milliseconds,
    );
  }

  async logSystemLine(line: string): Promise<void> {
    if (this.#capture !== undefined) return this.#capture.log.append([this.#systemLine(line)]);
    const log = await SegmentedLog.open(this.#deps.logFolder, this.#deps.logLimits.bytes);
    await log.append([this.#systemLine(line)]);
    await log.end();
  }

  /** The log, with all output written so far. */
  async openLog(): Promise<SegmentedLog> {
    const capture = this.#capture;
    await capture?.spool.drain();
    return capture?.log ?? SegmentedLog.openReadOnly(this.#deps.logFolder);
  }

  async exec(argv: readonly string[], options: ExecutionOptions): Promise<Execution> {
    return startInstanceCommand(this.#commandTarget, argv, options);
  }

  address(port: number): InstanceAddress | undefined {
    const mapped = this.saved.ports.find((entry) => entry.port === port);
    if (mapped === undefined || !this.isRunning) return undefined;
    const now = performance.now();
    const known = this.#addressCache.get(port);
    if (known !== undefined && known.until > now) return known.address;
    const address = findListeningSocket([mapped.hostPort, port], () =>
      recentInstanceProcesses(this.#selector).map(({ pid }) => pid),
    );
    if (address === undefined) this.#addressCache.delete(port);
    else this.#addressCache.set(port, { address, until: now + ADDRESS_CACHE_TTL_MS });
    return address;
  }

  /** Without GPUs, whose usage the engine adds. */
  usage(): Omit<InstanceUsage, 'gpus'> | undefined {
    if (!this.isRunning) return undefined;
    const { cpuSeconds, memoryInBytes } = sampleResources(this.#selector);
    return { cpu: this.#cpu.update(cpuSeconds, performance.now()), memoryInBytes };
  }

  async endForSpace(reason: string): Promise<void> {
    const log = (): Promise<boolean> =>
      this.logSystemLine(reason).then(
        () => true,
        () => false,
      );
    // On a full disk the line can be written only after the end.
    const isLogged = await log();
    await this.stop(0);
    if (!isLogged) await log();
  }

  measureDisk(): Promise<WritableDisk[]> {
    const pids = recentInstanceProcesses(this.#selector).map(({ pid }) => pid);
    return processDisks(this.saved, this.folder, pids, this.#deps.volumeSize);
  }

  /** Stops managing the instance, which keeps running. */
  async detach(): Promise<void> {
    this.#isEnding = true;
    clearTimeout(this.#killTimer);
    this.#capture?.watcher.close();
    await this.#capture?.spool.close();
    await this.#capture?.log.end();
  }

  get #commandTarget(): CommandTarget {
    const { saved, folder } = this;
    const { started, env } = this.#deps;
    return { saved, folder, started, env, selector: this.#selector, isRunning: () => this.isRunning };
  }

  get #selector(): ProcessSelector {
    return {
      root: this.folder.root,
      cgroup: this.saved.cgroup,
      started: this.#deps.started,
      uid: this.saved.user?.uid,
      namespaces: this.saved.namespaces === true,
    };
  }

  /** Its first process runs for a few milliseconds before it is moved, and may have forked by then. */
  async #joinCgroup(): Promise<void> {
    const { cgroup } = this.saved;
    if (cgroup === null) return;
    if (isAlive(this.#deps.started.child)) await joinCgroup(cgroup, this.#deps.started.child.pid);
    for (const { pid } of findInstanceProcesses(this.#selector)) await joinCgroup(cgroup, pid);
  }

  #systemLine(line: string): { ts: number; source: 'system'; line: string } {
    return { ts: this.#deps.clock.now(), source: 'system', line };
  }
}

function exitMessage(exitCode: number | null): string {
  if (exitCode === null) return 'Ended; exit code unknown.';
  const signal = signalOf(exitCode);
  return `Ended with exit code ${exitCode}${signal === null ? '' : ` (${signal})`}.`;
}
