import { BerthError } from '../../support/errors.ts';
import type { Clock } from '../../support/clock.ts';
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
import { SegmentedLog } from '../logs/segmented-log.ts';
import { joinCgroup, removeCgroup } from './cgroups.ts';
import { startExecution } from './process-execution.ts';
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
import { environmentOf } from './process-table.ts';
import { OutputSpool } from './output-spool.ts';
import { watchFolder } from './watch-folder.ts';

/** How long an address that was found is taken for granted. */
const ADDRESS_CACHE_TTL_MS = 1000;
/** Many small writes are carried to the log together. */
const CAPTURE_INTERVAL_MS = 10;
/** The most that a timer can wait. */
const MAX_GRACE_MS = 2 ** 31 - 1;

export interface ProcessInstanceOptions {
  saved: SavedInstance;
  folder: InstanceFolder;
  logFolder: string;
  clock: Clock;
  started: StartedProcesses;
  /** Known where this Berth started it; else it is asked of the kernel. */
  env?: Readonly<Record<string, string>>;
  /** Told when nothing of it runs any more. */
  onEnded: (instance: ProcessInstance) => void;
  /** Told of what could not be done and has nobody to be told otherwise. */
  onProblem: (what: string, error: unknown) => void;
}

/** One run of an instance, from when its process is there. */
export class ProcessInstance {
  readonly saved: SavedInstance;
  readonly folder: InstanceFolder;
  readonly #deps: ProcessInstanceOptions;
  readonly #exited = Promise.withResolvers<void>();
  readonly #cpu: CpuMeter;
  #writing: { book: SegmentedLog; spool: OutputSpool; watcher: { close(): void } } | undefined;
  #exit: { exitCode: number | null; at: number } | undefined;
  #ending = false;
  #stopping = false;
  #killAt = Infinity;
  #killTimer: NodeJS.Timeout | undefined;
  #found = new Map<number, { address: InstanceAddress; until: number }>();

  constructor(parts: ProcessInstanceOptions) {
    this.saved = parts.saved;
    this.folder = parts.folder;
    this.#deps = parts;
    this.#cpu = new CpuMeter(
      parts.env === undefined ? sampleResources(this.#selector).cpuSeconds : 0,
      performance.now(),
    );
    // A stop that fails is told to those who asked for it.
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

  /** Resolves when nothing of it runs any more. */
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

  /** Takes its output down from now on, into this log. */
  captureOutput(book: SegmentedLog): void {
    const spool = new OutputSpool({
      path: this.folder.output,
      run: this.saved.run,
      log: book,
      clock: this.#deps.clock,
    });
    const carry = throttle(async () => {
      try {
        await spool.drain();
      } catch (error) {
        this.#deps.onProblem(`the output of ${this.id} could not be written to its log`, error);
      }
    }, CAPTURE_INTERVAL_MS);
    this.#writing = { book, spool, watcher: watchFolder(this.folder.path, carry) };
    carry();
    void this.#joinCgroup().catch((error: unknown) =>
      this.#deps.onProblem(`${this.id} could not be moved to its cgroup`, error),
    );
  }

  /** What is known of a run that ended while nobody looked. */
  async finalize(): Promise<void> {
    this.#ending = true;
    if (this.folder.hasOutput()) {
      const book = await SegmentedLog.open(this.#deps.logFolder);
      this.#writing = {
        book,
        spool: new OutputSpool({
          path: this.folder.output,
          run: this.saved.run,
          log: book,
          clock: this.#deps.clock,
        }),
        watcher: { close: () => undefined },
      };
    }
    await this.#finalizeExit();
  }

  /** To be called when its supervisor has ended. */
  async onSupervisorExit(): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    await this.#finalizeExit();
  }

  async #finalizeExit(): Promise<void> {
    clearTimeout(this.#killTimer);
    // Another server has started it anew: what runs there is not this run's to end.
    if (this.folder.readSaved()?.run !== this.saved.run) return this.#detach();
    const exit = this.folder.readExit();
    try {
      await killInstanceProcesses(this.#selector);
      await this.#closeLog(exit?.exitCode ?? null);
    } catch (error) {
      this.#deps.onProblem(`${this.id} has ended, but not everything about it could be put in order`, error);
    }
    if (this.saved.cgroup !== null) removeCgroup(this.saved.cgroup);
    this.#exit = { exitCode: exit?.exitCode ?? null, at: exit?.at ?? this.#deps.clock.now() };
    this.#deps.onEnded(this);
    this.#exited.resolve();
  }

  async #detach(): Promise<void> {
    this.#writing?.watcher.close();
    await this.#writing?.spool.close();
    await this.#writing?.book.end();
    this.#writing = undefined;
    this.#exit = { exitCode: null, at: this.#deps.clock.now() };
    this.#deps.onEnded(this);
    this.#exited.resolve();
  }

  async #closeLog(exitCode: number | null): Promise<void> {
    if (this.#writing === undefined) return;
    const { book, spool, watcher } = this.#writing;
    watcher.close();
    await spool.finish();
    await book.append([this.#systemLine(exitMessage(exitCode))]);
    await book.end();
    this.folder.deleteOutput();
    this.#writing = undefined;
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
    await this.#emptyFolder();
  }

  /** Nothing of it runs any more, also where something that it wrote cannot be cleared away. That goes with its folder, at its next start or its removal. */
  async #emptyFolder(): Promise<void> {
    try {
      await this.folder.clear();
    } catch (error) {
      this.#deps.onProblem(`the container disk of ${this.id} could not be cleared away`, error);
    }
  }

  #sendTermination(): void {
    const { child } = this.#deps.started;
    // In its first moment it has no group of its own yet.
    if (isAlive(child) && !sendSignal(-child.pid, 'SIGTERM')) sendSignal(child.pid, 'SIGTERM');
  }

  #killWithin(milliseconds: number): void {
    const at = performance.now() + milliseconds;
    if (at >= this.#killAt || this.#ending) return;
    this.#killAt = at;
    clearTimeout(this.#killTimer);
    this.#killTimer = setTimeout(
      () => void killInstanceProcesses(this.#selector).catch((error: unknown) => this.#exited.reject(error)),
      milliseconds,
    );
  }

  async logSystemLine(line: string): Promise<void> {
    if (this.#writing !== undefined) return this.#writing.book.append([this.#systemLine(line)]);
    const book = await SegmentedLog.open(this.#deps.logFolder);
    await book.append([this.#systemLine(line)]);
    await book.end();
  }

  /** With everything in it that was written until now. */
  async openLog(): Promise<SegmentedLog> {
    const writing = this.#writing;
    await writing?.spool.drain();
    return writing?.book ?? SegmentedLog.openReadOnly(this.#deps.logFolder);
  }

  async exec(argv: readonly string[], { tty, env: added }: ExecutionOptions): Promise<Execution> {
    const own = this.#deps.env ?? environmentOf(this.#deps.started.supervisor.pid);
    if (!this.isRunning || own === undefined) throw new BerthError('state', `${this.id} does not run`);
    const { pid, execution } = await startExecution({
      argv,
      cwd: this.folder.root,
      env: { ...own, ...added },
      ...(tty === undefined ? {} : { tty }),
    });
    if (this.saved.cgroup !== null) await joinCgroup(this.saved.cgroup, pid);
    return execution;
  }

  address(port: number): InstanceAddress | undefined {
    const mapped = this.saved.ports.find((entry) => entry.port === port);
    if (mapped === undefined || !this.isRunning) return undefined;
    const now = performance.now();
    const known = this.#found.get(port);
    if (known !== undefined && known.until > now) return known.address;
    const address = findListeningSocket([mapped.hostPort, port], () =>
      recentInstanceProcesses(this.#selector).map(({ pid }) => pid),
    );
    if (address === undefined) this.#found.delete(port);
    else this.#found.set(port, { address, until: now + ADDRESS_CACHE_TTL_MS });
    return address;
  }

  /** Without its GPUs, of which the machine knows. */
  usage(): Omit<InstanceUsage, 'gpus'> | undefined {
    if (!this.isRunning) return undefined;
    const { cpuSeconds, memoryInBytes } = sampleResources(this.#selector);
    return { cpu: this.#cpu.update(cpuSeconds, performance.now()), memoryInBytes };
  }

  /** Lets go of it; it goes on. */
  async detach(): Promise<void> {
    this.#ending = true;
    clearTimeout(this.#killTimer);
    this.#writing?.watcher.close();
    await this.#writing?.spool.close();
    await this.#writing?.book.end();
  }

  get #selector(): ProcessSelector {
    return { root: this.folder.root, cgroup: this.saved.cgroup, started: this.#deps.started };
  }

  /** Its first process has a head start of a few milliseconds, in which others may have come from it. */
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
  if (exitCode === null) return 'Ended, and nobody saw how.';
  const signal = signalOf(exitCode);
  return `Ended with exit code ${exitCode}${signal === null ? '' : ` (${signal})`}.`;
}
