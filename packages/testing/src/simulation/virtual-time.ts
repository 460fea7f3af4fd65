import { AsyncLocalStorage } from 'node:async_hooks';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';

/**
 * A simulated process: its timers and messages wait while it is frozen, and are dropped when it has crashed.
 */
export interface SimulatedProcess {
  frozenUntil: number;
  hasCrashed: boolean;
}

type Scope = <T>(work: () => T) => T;

interface VirtualEvent {
  at: number;
  order: number;
  owner: SimulatedProcess | undefined;
  isCancelled: boolean;
  run: () => void;
}

/**
 * Long waits of all servers share timers (`support/shared-timer.ts`), so these belong to none of them. They
 * only end long polls, whose answer then waits for its server.
 */
const SHARED_TIMER_MS = 9_000;
/** How many events one turn of the real event loop handles. */
const EVENTS_PER_TURN = 64;
const START_OF_TIME = Date.UTC(2026, 5, 1);
/**
 * Runs of one process follow each other: what an earlier one left in shared timers must not meet a later one.
 */
const BETWEEN_RUNS_MS = 10_000_000;
let startOfRun = 0;

const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
  clearImmediate: globalThis.clearImmediate,
  performanceNow: performance.now.bind(performance),
  dateNow: Date.now,
  random: Math.random,
  randomBytes: crypto.randomBytes,
  nextTurn: timersPromises.setImmediate,
};

/** What the code under test gets as a timer. */
class VirtualTimer {
  event: VirtualEvent | undefined;

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  cancel(): void {
    if (this.event !== undefined) this.event.isCancelled = true;
    this.event = undefined;
  }
}

/**
 * Time that passes only from event to event. While it is installed, the timers, clocks and random numbers of
 * this process are its own: the code under test runs unchanged, as fast as the machine can, and the same seed
 * gives the same run. Between two events everything that waits for a promise is done.
 */
export class VirtualTime {
  readonly #events: VirtualEvent[] = [];
  readonly #context = new AsyncLocalStorage<SimulatedProcess | undefined>();
  /** The context of each process: to enter one that exists costs a tenth of creating one. */
  readonly #scopes = new WeakMap<SimulatedProcess, Scope>();
  readonly #outside: Scope = this.#context.run(undefined, () => AsyncLocalStorage.snapshot());
  readonly #random: () => number;
  readonly #started = startOfRun;
  #now = 0;
  #order = 0;
  steps = 0;
  /**
   * Follows from the times of all events: two runs that have the same did the same things at the same times.
   */
  digest = 0;
  /** How often random bytes were asked for. */
  draws = 0;
  /** Called after every event, when what it set in motion is done. */
  afterStep: () => Promise<void> | undefined = () => undefined;
  /**
   * Resolves when nothing is under way any more that takes real time: virtual time stands still meanwhile.
   */
  whenIdle: () => Promise<void> | undefined = () => undefined;

  constructor(random: () => number) {
    this.#random = random;
    startOfRun += BETWEEN_RUNS_MS;
  }

  /** Milliseconds since the start of the run. */
  get now(): number {
    return this.#now;
  }

  /** The true time of day. */
  get timeOfDay(): number {
    return START_OF_TIME + this.#now;
  }

  /** Whoever is called from here on runs in this process. */
  runIn<T>(owner: SimulatedProcess | undefined, work: () => T): T {
    return this.#scopeOf(owner)(work);
  }

  /** Calls back after some milliseconds, in a process. */
  after(milliseconds: number, owner: SimulatedProcess | undefined, run: () => void): VirtualEvent {
    const event: VirtualEvent = {
      at: exactly(this.#now + Math.max(0, milliseconds)),
      order: this.#order,
      owner,
      isCancelled: false,
      run,
    };
    this.#order += 1;
    this.#push(event);
    return event;
  }

  sleep(milliseconds: number, owner?: SimulatedProcess): Promise<void> {
    return new Promise((resolve) => this.after(milliseconds, owner, resolve));
  }

  /** Handles all events up to a time. Rejects with what `afterStep` throws. */
  async runUntil(end: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let isOver = false;
    let pending = 0;
    /** Something that takes real time. */
    let waiting: Promise<void> | undefined;
    const fail = (error: unknown): void => {
      isOver = true;
      reject(error);
    };
    const step = (): void => {
      isOver = !this.#step(end);
      if (isOver) resolve();
    };
    const next = (): void => {
      waiting = this.whenIdle();
      if (waiting !== undefined) return;
      const checking = this.afterStep();
      if (checking === undefined) step();
      else waiting = checking.then(step).catch(fail);
    };
    const turn = (): void => {
      pending -= 1;
      try {
        if (!isOver && waiting === undefined) next();
      } catch (error) {
        fail(error);
      }
      if (isOver || pending > 0) return;
      if (waiting === undefined) return schedule();
      void waiting.then(() => {
        waiting = undefined;
        schedule();
      });
    };
    // Node does everything that waits for a promise between two of these.
    const schedule = (): void => {
      for (; pending < EVENTS_PER_TURN; pending += 1) real.setImmediate(turn);
    };
    schedule();
    await promise;
    this.#now = Math.max(this.#now, end);
  }

  install(): void {
    const later = (
      callback: (...args: unknown[]) => void,
      milliseconds = 0,
      ...args: unknown[]
    ): VirtualTimer => {
      const timer = new VirtualTimer();
      const wait = Math.max(1, Number(milliseconds) || 0);
      timer.event = this.after(wait, this.#ownerOf(wait), () => callback(...args));
      return timer;
    };
    const repeat = (
      callback: (...args: unknown[]) => void,
      milliseconds = 0,
      ...args: unknown[]
    ): VirtualTimer => {
      const timer = new VirtualTimer();
      const wait = Math.max(1, Number(milliseconds) || 0);
      const owner = this.#ownerOf(0);
      const again = (): void => {
        timer.event = this.after(wait, owner, () => {
          again();
          callback(...args);
        });
      };
      again();
      return timer;
    };
    const soon = (callback: (...args: unknown[]) => void, ...args: unknown[]): VirtualTimer => {
      const timer = new VirtualTimer();
      timer.event = this.after(0, this.#ownerOf(0), () => callback(...args));
      return timer;
    };
    const cancel = (timer: unknown): void => {
      if (timer instanceof VirtualTimer) timer.cancel();
      else if (timer !== undefined) real.clearTimeout(timer as NodeJS.Timeout);
    };
    Object.assign(globalThis, {
      setTimeout: later,
      clearTimeout: cancel,
      setInterval: repeat,
      clearInterval: cancel,
      setImmediate: soon,
      clearImmediate: cancel,
    });
    performance.now = () => this.#started + this.#now;
    Date.now = () => this.timeOfDay;
    Math.random = this.#random;
    crypto.randomBytes = ((size: number) => this.#randomBytes(size)) as typeof crypto.randomBytes;
    timersPromises.setImmediate = ((value: unknown) =>
      new Promise<unknown>((resolve) =>
        soon(() => resolve(value)),
      )) as unknown as typeof timersPromises.setImmediate;
    syncBuiltinESMExports();
  }

  uninstall(): void {
    const { performanceNow, dateNow, random, randomBytes, nextTurn, ...timers } = real;
    Object.assign(globalThis, timers);
    performance.now = performanceNow;
    Date.now = dateNow;
    Math.random = random;
    crypto.randomBytes = randomBytes;
    timersPromises.setImmediate = nextTurn;
    syncBuiltinESMExports();
  }

  #randomBytes(size: number): Buffer {
    this.draws += 1;
    const bytes = Buffer.allocUnsafe(size);
    for (let index = 0; index < size; index += 1) bytes[index] = this.#random() * 256;
    return bytes;
  }

  #ownerOf(milliseconds: number): SimulatedProcess | undefined {
    return milliseconds >= SHARED_TIMER_MS ? undefined : this.#context.getStore();
  }

  #scopeOf(owner: SimulatedProcess | undefined): Scope {
    if (owner === undefined) return this.#outside;
    let scope = this.#scopes.get(owner);
    if (scope === undefined) {
      scope = this.#context.run(owner, () => AsyncLocalStorage.snapshot());
      this.#scopes.set(owner, scope);
    }
    return scope;
  }

  /** False where nothing is left to do before the end. */
  #step(end: number): boolean {
    for (;;) {
      const event = this.#events[0];
      if (event === undefined || event.at > end) return false;
      this.#pop();
      const { owner } = event;
      if (event.isCancelled || owner?.hasCrashed === true) continue;
      if (owner !== undefined && owner.frozenUntil > event.at) {
        event.at = exactly(owner.frozenUntil);
        this.#push(event);
        continue;
      }
      this.#now = Math.max(this.#now, event.at);
      this.steps += 1;
      this.digest = Math.imul(this.digest ^ ((event.at * 1024) | 0), 0x01000193);
      this.#scopeOf(owner)(event.run);
      return true;
    }
  }

  // A binary heap by time, then by order.

  #push(event: VirtualEvent): void {
    const heap = this.#events;
    let index = heap.length;
    heap.push(event);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(event, heap[parent] as VirtualEvent)) break;
      heap[index] = heap[parent] as VirtualEvent;
      index = parent;
    }
    heap[index] = event;
  }

  #pop(): void {
    const heap = this.#events;
    const last = heap.pop() as VirtualEvent;
    if (heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as VirtualEvent, heap[child] as VirtualEvent))
        child += 1;
      if (!isBefore(heap[child] as VirtualEvent, last)) break;
      heap[index] = heap[child] as VirtualEvent;
      index = child;
    }
    heap[index] = last;
  }
}

/**
 * In parts of a millisecond that a number holds exactly, whenever the run began: else its timers would depend
 * on that.
 */
function exactly(milliseconds: number): number {
  return Math.ceil(milliseconds * 1024) / 1024;
}

function isBefore(one: VirtualEvent, other: VirtualEvent): boolean {
  return one.at === other.at ? one.order < other.order : one.at < other.at;
}

/** The processor time that this process has used, in milliseconds, whatever the virtual time says. */
export function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
