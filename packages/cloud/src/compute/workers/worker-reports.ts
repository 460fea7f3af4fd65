import type { ServerStore, WorkerReport } from '../../store/server-store.ts';
import type { Log } from '../../support/log.ts';
import type { EndpointWorkerSet } from './endpoint-worker-set.ts';
import { ReachableAddresses, type ReachWorker } from './reachable-addresses.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import type { WorkerShard, WorkerShards } from './worker-shards.ts';

const REPORT_EVERY_MS = 500;

/** What others need to know of a live worker. */
type ReportedWorker = Pick<
  TrackedWorker,
  'record' | 'busy' | 'accelerated' | 'unhealthyReason' | 'progress' | 'address' | 'runningSince'
>;

interface EndpointReport {
  workers: ReportedWorker[];
  crashes: EndpointWorkerSet['crashes'];
  placementFailure: string | undefined;
  throttled: number;
}

export interface WorkerReportsDeps {
  /** Those that this server manages are reported, the others are read. */
  shards: WorkerShards;
  store: Pick<ServerStore, 'listReports'>;
  /** Stores the reports of one shard, while this server holds it. */
  saveReports(shard: number, reports: readonly WorkerReport[]): Promise<void>;
  /** Whether there are others to report to. */
  hasPeers(): boolean;
  reach: ReachWorker;
  log: Log;
}

/**
 * The server that manages workers stores what it knows of them, and the other servers read it: every server can
 * answer for all workers.
 */
export class WorkerReports {
  readonly #deps: WorkerReportsDeps;
  readonly #shards: ReadonlyMap<WorkerShard, ReportedShard>;
  #readUntil = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #hasFailed = false;

  constructor(deps: WorkerReportsDeps) {
    this.#deps = deps;
    this.#shards = new Map(
      deps.shards.all.map((shard, index) => [
        shard,
        new ReportedShard(shard, deps, (reports) => deps.saveReports(index, reports)),
      ]),
    );
  }

  start(): void {
    this.#timer = setTimeout(() => void this.#tick(), REPORT_EVERY_MS);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #tick(): Promise<void> {
    try {
      await this.#writeAndRead([...this.#shards.values()]);
      this.#hasFailed = false;
    } catch (error) {
      // Said once: the database may be away for long.
      if (!this.#hasFailed && !this.#isClosed)
        this.#deps.log.warn({ err: error }, 'the workers could not be reported between the servers');
      this.#hasFailed = true;
    }
    if (!this.#isClosed) this.start();
  }

  async #writeAndRead(all: readonly ReportedShard[]): Promise<void> {
    for (const shard of all) if (shard.turn()) this.#readUntil = 0;
    const isWritten = new Set(all.filter(({ isElected }) => isElected));
    const former = cachedListing(() => this.#deps.store.listReports(0));
    // One that this server has just lost must not keep the others from being reported.
    const written = await Promise.allSettled([...isWritten].map((shard) => shard.write(former)));
    if (isWritten.size < all.length) await this.#read(isWritten);
    for (const one of written) if (one.status === 'rejected') throw one.reason;
  }

  async #read(isWritten: ReadonlySet<ReportedShard>): Promise<void> {
    const { reports, at } = await this.#deps.store.listReports(this.#readUntil);
    this.#readUntil = at;
    for (const report of reports) {
      const shard = this.#shards.get(this.#deps.shards.of(report.endpointId));
      if (shard !== undefined && !isWritten.has(shard)) shard.read(report);
    }
    for (const shard of this.#shards.values()) if (!isWritten.has(shard)) await shard.findAddresses();
  }
}

type Listing = () => Promise<{ reports: WorkerReport[] }>;

/** Shards that are taken together read what was reported before only once. */
function cachedListing(list: Listing): Listing {
  let listing: ReturnType<Listing> | undefined;
  return () => (listing ??= list());
}

/** What is reported of the workers of one shard. */
class ReportedShard {
  readonly #shard: WorkerShard;
  readonly #deps: WorkerReportsDeps;
  readonly #save: (reports: readonly WorkerReport[]) => Promise<void>;
  readonly #reported = new Map<string, string>();
  readonly #addresses: ReachableAddresses;
  isElected = false;
  /** Since this server manages these workers, or has others to report to. */
  #hasWritten = false;

  constructor(
    shard: WorkerShard,
    deps: WorkerReportsDeps,
    save: (reports: readonly WorkerReport[]) => Promise<void>,
  ) {
    this.#shard = shard;
    this.#deps = deps;
    this.#save = save;
    this.#addresses = new ReachableAddresses(shard.components.mirror, deps.reach);
  }

  /** Whether another server manages these workers since the last turn. */
  turn(): boolean {
    const isElected = this.#shard.isElected();
    if (isElected === this.isElected) return false;
    this.isElected = isElected;
    this.#forget();
    this.#addresses.clear();
    this.#shard.components.mirror.clear();
    return true;
  }

  async write(listFormer: Listing): Promise<void> {
    const { hasPeers, shards } = this.#deps;
    const { registry } = this.#shard.components;
    if (!hasPeers()) return this.#forget();
    const isFirst = !this.#hasWritten;
    const known = new Set(registry.endpointIds());
    // What an earlier leader knew of endpoints that have no workers any more.
    const former = isFirst ? (await listFormer()).reports : [];
    const candidates = new Set([
      ...known,
      ...this.#reported.keys(),
      ...former.flatMap(({ endpointId }) => (shards.of(endpointId) === this.#shard ? [endpointId] : [])),
    ]);
    const changed: WorkerReport[] = [];
    for (const endpointId of candidates) {
      const workerSet = registry.find(endpointId);
      const report = workerSet === undefined ? '' : writeReport(workerSet);
      if (report !== (this.#reported.get(endpointId) ?? (isFirst ? undefined : '')))
        changed.push({ endpointId, report });
    }
    await this.#save(changed);
    this.#hasWritten = true;
    for (const { endpointId, report } of changed) this.#reported.set(endpointId, report);
  }

  #forget(): void {
    this.#reported.clear();
    this.#hasWritten = false;
  }

  read({ endpointId, report }: WorkerReport): void {
    const { mirror } = this.#shard.components;
    if (this.#reported.get(endpointId) === report) return;
    this.#reported.set(endpointId, report);
    if (report === '') mirror.removeEndpoint(endpointId);
    else readReport(mirror.getOrCreate(endpointId), report);
    for (const worker of mirror.workersOf(endpointId)) this.#addresses.replace(endpointId, worker);
    mirror.changes.notify(endpointId);
  }

  findAddresses(): Promise<void> {
    return this.#addresses.find();
  }
}

function writeReport(workerSet: EndpointWorkerSet): string {
  const workers = [...workerSet.workers.values()].map(
    ({ record, busy, accelerated, unhealthyReason, progress, address, runningSince }): ReportedWorker => ({
      record,
      busy,
      accelerated,
      unhealthyReason,
      progress,
      address,
      runningSince,
    }),
  );
  const { crashes, placementFailure, throttled } = workerSet;
  return JSON.stringify({ workers, crashes, placementFailure, throttled } satisfies EndpointReport);
}

function readReport(workerSet: EndpointWorkerSet, text: string): void {
  const { workers, crashes, placementFailure, throttled } = JSON.parse(text) as EndpointReport;
  for (const id of workerSet.workers.keys()) workerSet.remove(id);
  for (const { record, ...rest } of workers) Object.assign(workerSet.add(record), rest);
  workerSet.crashes = crashes;
  if (placementFailure === undefined) workerSet.clearPlacementFailure();
  else workerSet.setPlacementFailure(throttled, placementFailure);
}
