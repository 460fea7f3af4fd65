import type { InstanceEngine } from '../../../cloud/src/engines/engine.ts';
import type {
  Instance,
  InstanceEvent,
  InstanceHandle,
  InstanceSpec,
} from '../../../cloud/src/engines/instance.ts';
import type { LogLine } from '../../../cloud/src/domain/log-line.ts';
import type { Capacity } from '../../../cloud/src/domain/placement/engine-capacity.ts';
import type { Clock } from '../../../cloud/src/support/clock.ts';
import { BerthError } from '../../../cloud/src/support/errors.ts';
import type { SeededRandom } from '../safety/seeded-random.ts';
import type { SimulatedProcess, VirtualTime } from './virtual-time.ts';

/** What runs in the instance. */
export interface InstanceProgram {
  /** It is asked to end, and has this long. */
  stop(graceMs: number): void;
  /** It was killed. */
  kill(): void;
}

export interface EngineInstance {
  spec: InstanceSpec;
  /** True times, in milliseconds since the start of the run. */
  startedAt: number;
  endedAt: number | null;
  exitCode: number | null;
  program: InstanceProgram;
  onExit: (() => void)[];
}

export interface SimulatedEngineDeps {
  time: VirtualTime;
  random: SeededRandom;
  /** Starts what the instance runs. `exit` ends the instance. */
  run(spec: InstanceSpec, exit: (exitCode: number) => void): InstanceProgram;
  /** A server asked for the end of an instance that runs. */
  onEndAsked(spec: InstanceSpec): void;
  trace(line: string): void;
}

const CAPACITY: Capacity = {
  cpu: { model: 'simulated', cores: 64, threads: 128 },
  memoryInGb: 1024,
  gpus: [],
};
const MAX_START_MS = 3_000;
const MAX_LATENCY_MS = 15;

/** A machine that runs instances. It goes on when servers crash, and all servers see the same one. */
export class SimulatedEngine {
  readonly #deps: SimulatedEngineDeps;
  readonly #instances = new Map<string, EngineInstance>();
  readonly #watchers = new Set<(id: string, instance: EngineInstance) => void>();
  /** All that ever ran. */
  readonly history: EngineInstance[] = [];
  /** It does not answer before this time. */
  downUntil = 0;
  /** The share of calls that fail, before or after they were executed. */
  failureRate = 0;

  constructor(deps: SimulatedEngineDeps) {
    this.#deps = deps;
  }

  get running(): EngineInstance[] {
    return [...this.#instances.values()].filter(({ endedAt }) => endedAt === null);
  }

  /** The instance ends by itself. */
  exit(instance: EngineInstance, exitCode: number): void {
    if (instance.endedAt !== null) return;
    const { time, trace } = this.#deps;
    instance.endedAt = time.now;
    instance.exitCode = exitCode;
    instance.program.kill();
    trace(`instance ${instance.spec.id} ended with ${exitCode}`);
    for (const watcher of this.#watchers) watcher(instance.spec.id, instance);
    for (const listener of instance.onExit.splice(0)) listener();
  }

  /** The driver of one server. */
  connect(server: SimulatedProcess, clock: Clock): InstanceEngine {
    const { time } = this.#deps;
    const call = <T>(work: () => Promise<T>): Promise<T> => this.#call(server, work);
    /** By the clock of the server, as a driver reads it. */
    const serverTime = (at: number): number => Math.round(clock.now() - (time.now - at));
    return {
      kind: 'docker',
      capabilities: { images: 'containers', terminal: false, sharesCores: true },
      imageProblem: () => undefined,
      capacity: () => call(async () => CAPACITY),
      start: (spec) => call(() => this.#start(spec)),
      adopt: (handle) =>
        call(async () => {
          const found = this.#instances.get(handle.id);
          return found && describe(found, serverTime);
        }),
      stop: (id, graceMs) => call(() => this.#stop(id, graceMs)),
      remove: (id) =>
        call(async () => {
          const found = this.#instances.get(id);
          if (found?.endedAt === null) this.#deps.onEndAsked(found.spec);
          if (found !== undefined) this.exit(found, 137);
          this.#instances.delete(id);
        }),
      deleteLog: async () => undefined,
      list: () => call(async () => [...this.#instances.values()].map((one) => describe(one, serverTime))),
      watch: (listener) => {
        const watcher = (id: string, instance: EngineInstance): void => {
          const happenedAt = time.now;
          time.after(this.#latency(), server, () => {
            if (this.#watchers.has(watcher))
              listener(exitEvent(id, instance, serverTime(instance.endedAt ?? happenedAt)));
          });
        };
        this.#watchers.add(watcher);
        return () => this.#watchers.delete(watcher);
      },
      logs: noLines,
      logSystemLine: async () => undefined,
      exec: () => Promise.reject(new BerthError('state', 'nothing can be run here')),
      address: async () => undefined,
      usage: async () => undefined,
      close: async () => undefined,
    };
  }

  async #start(spec: InstanceSpec): Promise<InstanceHandle> {
    const { time, random, run, trace } = this.#deps;
    const known = this.#instances.get(spec.id);
    if (known?.endedAt === null) return handleOf(spec.id);
    spec.onImageReady?.();
    await time.sleep(random.next() ** 2 * MAX_START_MS);
    const instance: EngineInstance = {
      spec,
      startedAt: time.now,
      endedAt: null,
      exitCode: null,
      program: { stop: () => undefined, kill: () => undefined },
      onExit: [],
    };
    this.#instances.set(spec.id, instance);
    this.history.push(instance);
    trace(`instance ${spec.id} runs`);
    instance.program = run(spec, (exitCode) => this.exit(instance, exitCode));
    return handleOf(spec.id);
  }

  async #stop(id: string, graceMs: number): Promise<void> {
    const found = this.#instances.get(id);
    if (found === undefined || found.endedAt !== null) return;
    this.#deps.onEndAsked(found.spec);
    const ended = new Promise<void>((resolve) => found.onExit.push(resolve));
    found.program.stop(graceMs);
    this.#deps.time.after(graceMs, undefined, () => this.exit(found, 137));
    await ended;
  }

  /** Where it fails, it may have been executed all the same. */
  #call<T>(server: SimulatedProcess, work: () => Promise<T>): Promise<T> {
    const { time, random } = this.#deps;
    return new Promise((resolve, reject) => {
      if (server.hasCrashed) return;
      const fail = (): void =>
        void time.after(this.#latency(), server, () =>
          reject(new BerthError('unavailable', 'the engine does not answer')),
        );
      time.after(this.#latency(), undefined, () => {
        if (this.downUntil > time.now) return fail();
        const fails = random.chance(this.failureRate);
        if (fails && random.chance(0.5)) return fail();
        work().then(
          (value) => (fails ? fail() : void time.after(this.#latency(), server, () => resolve(value))),
          (error: unknown) => time.after(this.#latency(), server, () => reject(error)),
        );
      });
    });
  }

  #latency(): number {
    return this.#deps.random.next() ** 3 * MAX_LATENCY_MS;
  }
}

async function* noLines(): AsyncGenerator<LogLine> {
  // Instances of the simulation write nothing.
}

function handleOf(id: string): InstanceHandle {
  return { engine: 'docker', id, state: {} };
}

function describe(
  { spec, startedAt, endedAt, exitCode }: EngineInstance,
  serverTime: (at: number) => number,
): Instance {
  return {
    id: spec.id,
    labels: spec.labels,
    image: spec.image,
    handle: handleOf(spec.id),
    status: endedAt === null ? 'running' : 'exited',
    startedAt: serverTime(startedAt),
    endedAt: endedAt === null ? null : serverTime(endedAt),
    exitCode,
    signal: null,
  };
}

function exitEvent(id: string, { exitCode }: EngineInstance, at: number): InstanceEvent {
  return { id, status: 'exited', exitCode, signal: null, at };
}
