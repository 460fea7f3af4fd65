import type { Worker } from '../../domain/endpoints/worker-record.ts';
import type { CloudEventBus } from '../../domain/events.ts';
import { minuteOf } from '../../domain/history/job-history.ts';
import { workerHistoryId } from '../../domain/history/worker-history.ts';
import { HOUR_MS, MINUTE_MS, observe } from '../../domain/history/rollup.ts';
import type { Rollup } from '../../domain/history/rollup.ts';
import type { HistoryStore } from '../../store/history-store.ts';
import type { Clock } from '../../support/clock.ts';
import type { Log } from '../../support/log.ts';
import type { GpuUse } from '../metrics/data-center-metrics.ts';
import { startPhaseDurations } from '../start-phase-durations.ts';

const SAMPLE_INTERVAL_MS = 15_000;
/**
 * A change of a job may be committed this much after its minute at most, to be folded with it; a later one is
 * folded by itself.
 */
const FOLD_AFTER_MS = 90_000;
const MINUTES_KEPT_MS = 48 * HOUR_MS;
/** Rows of minutes, of all endpoints and pods together: about 400 bytes each. */
const MAX_MINUTE_ROWS = 1_000_000;
const TRIM_INTERVAL_MS = 10 * MINUTE_MS;
/** Instances whose use is read in one round; the others have their turn in the next ones. */
const MAX_USAGE_READS = 200;

/** What an instance uses now. GPU values are in per cent. */
export interface SampledUsage {
  cpu: number;
  memoryInBytes: number;
  gpus: readonly { util: number; memoryUtil: number }[];
}

/** One instance of an endpoint or a pod. */
export interface SampledInstance {
  /** The endpoint or the pod. */
  resourceId: string;
  /** Set for the worker of an endpoint, which has a history of its own too. */
  workerId?: string;
  dataCenterId: string;
  usage(): Promise<SampledUsage | undefined>;
}

export interface HistorySamplerDeps {
  store: HistoryStore;
  /** The workers of each endpoint by state. */
  workerCounts(): Iterable<{ endpointId: string; counts: Readonly<Record<string, number>> }>;
  /** What runs now. */
  instances(): Promise<SampledInstance[]>;
  events: CloudEventBus;
  clock: Clock;
  /** How long rows of hours are kept. */
  keepDays: number;
  log: Log;
}

/**
 * Measures what endpoints and pods use, a few times a minute, and keeps the roll-ups in order. Only the
 * leading server does.
 */
export class HistorySampler {
  readonly #deps: HistorySamplerDeps;
  /** What was measured in the current minute, by resource. */
  #minute = -1;
  #samples = new Map<string, Rollup>();
  #workerSamples = new Map<string, Rollup>();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | undefined;
  #nextInstance = 0;
  #trimmedAt = -Infinity;
  /** Of the last round, by data center. */
  #gpuUse = new Map<string, GpuUse>();
  #unsubscribe = (): void => undefined;

  constructor(deps: HistorySamplerDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.stop();
    this.#unsubscribe = this.#deps.events.subscribe('worker.ready', ({ worker }) => this.#onReady(worker));
    this.#timer = setInterval(() => this.#runRound(), SAMPLE_INTERVAL_MS).unref();
    this.#runRound();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#unsubscribe();
  }

  /** Writes what was measured. */
  async close(): Promise<void> {
    this.stop();
    await this.#round;
    await this.#flush();
  }

  #runRound(): void {
    this.#round ??= this.sample()
      .catch((error: unknown) => this.#deps.log.warn({ err: error }, 'the history could not be written'))
      .finally(() => (this.#round = undefined));
  }

  async sample(): Promise<void> {
    const { store, clock } = this.#deps;
    const now = clock.now();
    if (minuteOf(now) !== this.#minute) {
      await this.#flush();
      this.#minute = minuteOf(now);
    }
    for (const { endpointId, queued, running } of await store.queueDepths()) {
      observe(this.#of(endpointId), 'queued', queued);
      observe(this.#of(endpointId), 'running', running);
    }
    for (const { endpointId, counts } of this.#deps.workerCounts())
      for (const [state, count] of Object.entries(counts))
        if (count > 0) observe(this.#of(endpointId), `workers/${state}`, count);
    await this.#sampleUsage();
    while (await store.foldJobs(minuteOf(now - FOLD_AFTER_MS)));
    await this.#trim(now);
  }

  async #sampleUsage(): Promise<void> {
    const all = await this.#deps.instances();
    const count = Math.min(all.length, MAX_USAGE_READS);
    const first = all.length === 0 ? 0 : this.#nextInstance % all.length;
    this.#nextInstance = first + count;
    const gpuUse = new Map<string, GpuUse>();
    for (let index = 0; index < count; index += 1) {
      const instance = all[(first + index) % all.length] as SampledInstance;
      const { resourceId, workerId, dataCenterId } = instance;
      const used = await instance.usage().catch(() => undefined);
      if (used === undefined) continue;
      observeUsage(this.#of(resourceId), used);
      if (workerId !== undefined)
        observeUsage(rollupOf(this.#workerSamples, workerHistoryId(resourceId, workerId)), used);
      const ofDataCenter = gpuUse.get(dataCenterId) ?? { dataCenterId, gpus: 0, util: 0, memoryUtil: 0 };
      gpuUse.set(dataCenterId, ofDataCenter);
      for (const { util, memoryUtil } of used.gpus) {
        ofDataCenter.gpus += 1;
        ofDataCenter.util += util / 100;
        ofDataCenter.memoryUtil += memoryUtil / 100;
      }
    }
    this.#gpuUse = gpuUse;
  }

  /** How the GPUs that instances hold were used in the last round, by data center. */
  gpuUse(): Iterable<GpuUse> {
    return this.#gpuUse.values();
  }

  #onReady(worker: Worker): void {
    const rollup = this.#of(worker.endpointId);
    for (const [phase, milliseconds] of startPhaseDurations(worker))
      observe(rollup, `start/${phase}`, milliseconds);
  }

  #of(resourceId: string): Rollup {
    return rollupOf(this.#samples, resourceId);
  }

  async #flush(): Promise<void> {
    const minute = this.#minute;
    const samples = [
      ...[...this.#samples].map(([resourceId, data]) => ({ resourceId, minute, data })),
      ...[...this.#workerSamples].map(([resourceId, data]) => ({
        resourceId,
        minute,
        data,
        minuteOnly: true,
      })),
    ].filter(({ data }) => Object.keys(data).length > 0);
    this.#samples = new Map();
    this.#workerSamples = new Map();
    if (minute < 0 || samples.length === 0) return;
    await this.#deps.store.addSamples(samples);
  }

  async #trim(now: number): Promise<void> {
    if (now - this.#trimmedAt < TRIM_INTERVAL_MS) return;
    this.#trimmedAt = now;
    await this.#deps.store.trim({
      minutesFrom: now - MINUTES_KEPT_MS,
      hoursFrom: now - this.#deps.keepDays * 24 * HOUR_MS,
      maxMinutes: MAX_MINUTE_ROWS,
    });
  }
}

function rollupOf(samples: Map<string, Rollup>, id: string): Rollup {
  let rollup = samples.get(id);
  if (rollup === undefined) samples.set(id, (rollup = {}));
  return rollup;
}

function observeUsage(rollup: Rollup, { cpu, memoryInBytes, gpus }: SampledUsage): void {
  observe(rollup, 'cpu', cpu);
  observe(rollup, 'memory', memoryInBytes);
  for (const { util, memoryUtil } of gpus) {
    observe(rollup, 'gpu', util / 100);
    observe(rollup, 'gpuMemory', memoryUtil / 100);
  }
}
