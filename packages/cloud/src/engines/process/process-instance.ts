import { BerthError } from '../../support/errors.ts';
import type { Clock } from '../../support/clock.ts';
import { CpuMeter } from '../cpu-meter.ts';
import { signalOf } from '../exit-code.ts';
import type { Address, Execution, ExecutionOptions, Instance, InstanceHandle, Usage } from '../instance.ts';
import { LogBook } from '../logs/log-book.ts';
import { joinCgroup, removeCgroup } from './cgroups.ts';
import { startExecution } from './execution.ts';
import type { InstanceFolder, SavedInstance, Started } from './instance-folder.ts';
import { findListener } from './listeners.ts';
import { type Belonging, endMembers, isAlive, membersAtHand, membersOf, sendSignal } from './membership.ts';
import { takeSample } from './sample.ts';
import { inRounds } from './in-rounds.ts';
import { environmentOf } from './process-table.ts';
import { Spool } from './spool.ts';
import { watchFolder } from './watch-folder.ts';

/** How long an address that was found is taken for granted. */
const ADDRESS_LIFETIME_MS = 1000;
/** Many small writes are carried to the log together. */
const BETWEEN_ROUNDS_MS = 10;
/** The most that a timer can wait. */
const LONGEST_GRACE_MS = 2 ** 31 - 1;

export interface ProcessInstanceParts {
  saved: SavedInstance;
  folder: InstanceFolder;
  logFolder: string;
  clock: Clock;
  started: Started;
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
  readonly #parts: ProcessInstanceParts;
  readonly #gone = Promise.withResolvers<void>();
  readonly #cpu: CpuMeter;
  #writing: { book: LogBook; spool: Spool; watcher: { close(): void } } | undefined;
  #exit: { exitCode: number | null; at: number } | undefined;
  #ending = false;
  #stopping = false;
  #killAt = Infinity;
  #killTimer: NodeJS.Timeout | undefined;
  #found = new Map<number, { address: Address; until: number }>();

  constructor(parts: ProcessInstanceParts) {
    this.saved = parts.saved;
    this.folder = parts.folder;
    this.#parts = parts;
    this.#cpu = new CpuMeter(
      parts.env === undefined ? takeSample(this.#belonging).cpuSeconds : 0,
      performance.now(),
    );
    // A stop that fails is told to those who asked for it.
    this.#gone.promise.catch(() => undefined);
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
    return this.#gone.promise;
  }

  get supervisorIsAlive(): boolean {
    return isAlive(this.#parts.started.supervisor);
  }

  get handle(): InstanceHandle {
    const { supervisor } = this.#parts.started;
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
  attend(book: LogBook): void {
    const spool = new Spool({
      path: this.folder.output,
      run: this.saved.run,
      book,
      clock: this.#parts.clock,
    });
    const carry = inRounds(async () => {
      try {
        await spool.drain();
      } catch (error) {
        this.#parts.onProblem(`the output of ${this.id} could not be written to its log`, error);
      }
    }, BETWEEN_ROUNDS_MS);
    this.#writing = { book, spool, watcher: watchFolder(this.folder.path, carry) };
    carry();
    void this.#joinCgroup().catch((error: unknown) =>
      this.#parts.onProblem(`${this.id} could not be moved to its cgroup`, error),
    );
  }

  /** What is known of a run that ended while nobody looked. */
  async settle(): Promise<void> {
    this.#ending = true;
    if (this.folder.hasOutput()) {
      const book = await LogBook.open(this.#parts.logFolder);
      this.#writing = {
        book,
        spool: new Spool({ path: this.folder.output, run: this.saved.run, book, clock: this.#parts.clock }),
        watcher: { close: () => undefined },
      };
    }
    await this.#conclude();
  }

  /** To be called when its supervisor has ended. */
  async end(): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    await this.#conclude();
  }

  async #conclude(): Promise<void> {
    clearTimeout(this.#killTimer);
    // Another server has started it anew: what runs there is not this run's to end.
    if (this.folder.saved()?.run !== this.saved.run) return this.#letGo();
    const exit = this.folder.exit();
    try {
      await endMembers(this.#belonging);
      await this.#closeLog(exit?.exitCode ?? null);
    } catch (error) {
      this.#parts.onProblem(`${this.id} has ended, but not everything about it could be put in order`, error);
    }
    if (this.saved.cgroup !== null) removeCgroup(this.saved.cgroup);
    this.#exit = { exitCode: exit?.exitCode ?? null, at: exit?.at ?? this.#parts.clock.now() };
    this.#parts.onEnded(this);
    this.#gone.resolve();
  }

  async #letGo(): Promise<void> {
    this.#writing?.watcher.close();
    await this.#writing?.spool.close();
    await this.#writing?.book.end();
    this.#writing = undefined;
    this.#exit = { exitCode: null, at: this.#parts.clock.now() };
    this.#parts.onEnded(this);
    this.#gone.resolve();
  }

  async #closeLog(exitCode: number | null): Promise<void> {
    if (this.#writing === undefined) return;
    const { book, spool, watcher } = this.#writing;
    watcher.close();
    await spool.finish();
    await book.append([this.#systemLine(farewell(exitCode))]);
    await book.end();
    this.folder.dropOutput();
    this.#writing = undefined;
  }

  async stop(graceMs: number): Promise<void> {
    if (this.isRunning) {
      if (!this.#stopping) {
        this.#stopping = true;
        this.note(`Asked to end, within ${graceMs / 1000} s.`).catch((error: unknown) =>
          this.#parts.onProblem(`the log of ${this.id} could not be written`, error),
        );
        this.#askToEnd();
      }
      this.#killWithin(Math.min(graceMs, LONGEST_GRACE_MS));
      await this.gone;
    }
    await this.#emptyFolder();
  }

  /** Nothing of it runs any more, also where something that it wrote cannot be cleared away. That goes with its folder, at its next start or its removal. */
  async #emptyFolder(): Promise<void> {
    try {
      await this.folder.empty();
    } catch (error) {
      this.#parts.onProblem(`the container disk of ${this.id} could not be cleared away`, error);
    }
  }

  #askToEnd(): void {
    const { child } = this.#parts.started;
    // In its first moment it has no group of its own yet.
    if (isAlive(child) && !sendSignal(-child.pid, 'SIGTERM')) sendSignal(child.pid, 'SIGTERM');
  }

  #killWithin(milliseconds: number): void {
    const at = performance.now() + milliseconds;
    if (at >= this.#killAt || this.#ending) return;
    this.#killAt = at;
    clearTimeout(this.#killTimer);
    this.#killTimer = setTimeout(
      () => void endMembers(this.#belonging).catch((error: unknown) => this.#gone.reject(error)),
      milliseconds,
    );
  }

  async note(line: string): Promise<void> {
    if (this.#writing !== undefined) return this.#writing.book.append([this.#systemLine(line)]);
    const book = await LogBook.open(this.#parts.logFolder);
    await book.append([this.#systemLine(line)]);
    await book.end();
  }

  /** With everything in it that was written until now. */
  async log(): Promise<LogBook> {
    const writing = this.#writing;
    await writing?.spool.drain();
    return writing?.book ?? LogBook.read(this.#parts.logFolder);
  }

  async exec(argv: readonly string[], { tty, env: added }: ExecutionOptions): Promise<Execution> {
    const own = this.#parts.env ?? environmentOf(this.#parts.started.supervisor.pid);
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

  address(port: number): Address | undefined {
    const mapped = this.saved.ports.find((entry) => entry.port === port);
    if (mapped === undefined || !this.isRunning) return undefined;
    const now = performance.now();
    const known = this.#found.get(port);
    if (known !== undefined && known.until > now) return known.address;
    const address = findListener([mapped.hostPort, port], () =>
      membersAtHand(this.#belonging).map(({ pid }) => pid),
    );
    if (address === undefined) this.#found.delete(port);
    else this.#found.set(port, { address, until: now + ADDRESS_LIFETIME_MS });
    return address;
  }

  /** Without its GPUs, of which the machine knows. */
  usage(): Omit<Usage, 'gpus'> | undefined {
    if (!this.isRunning) return undefined;
    const { cpuSeconds, memoryInBytes } = takeSample(this.#belonging);
    return { cpu: this.#cpu.look(cpuSeconds, performance.now()), memoryInBytes };
  }

  /** Lets go of it; it goes on. */
  async release(): Promise<void> {
    this.#ending = true;
    clearTimeout(this.#killTimer);
    this.#writing?.watcher.close();
    await this.#writing?.spool.close();
    await this.#writing?.book.end();
  }

  get #belonging(): Belonging {
    return { root: this.folder.root, cgroup: this.saved.cgroup, started: this.#parts.started };
  }

  /** Its first process has a head start of a few milliseconds, in which others may have come from it. */
  async #joinCgroup(): Promise<void> {
    const { cgroup } = this.saved;
    if (cgroup === null) return;
    if (isAlive(this.#parts.started.child)) await joinCgroup(cgroup, this.#parts.started.child.pid);
    for (const { pid } of membersOf(this.#belonging)) await joinCgroup(cgroup, pid);
  }

  #systemLine(line: string): { ts: number; source: 'system'; line: string } {
    return { ts: this.#parts.clock.now(), source: 'system', line };
  }
}

function farewell(exitCode: number | null): string {
  if (exitCode === null) return 'Ended, and nobody saw how.';
  const signal = signalOf(exitCode);
  return `Ended with exit code ${exitCode}${signal === null ? '' : ` (${signal})`}.`;
}
