import type { ServerStore, WorkerReport } from '../../store/server-store.ts';
import type { Log } from '../../support/log.ts';
import type { EndpointWorkerSet } from './endpoint-worker-set.ts';
import { ReachableAddresses, type ReachWorker } from './reachable-addresses.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import type { WorkerRegistry } from './worker-registry.ts';

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
  /** What the leading server knows. */
  registry: WorkerRegistry;
  /** The same on the other ones, as it was reported last. */
  mirror: WorkerRegistry;
  store: Pick<ServerStore, 'saveReports' | 'listReports'>;
  isLeading(): boolean;
  /** Whether there are others to report to. */
  hasPeers(): boolean;
  reach: ReachWorker;
  log: Log;
}

/**
 * The leader stores what it knows of its workers, and the other servers read it: every server can answer for
 * all workers.
 */
export class WorkerReports {
  readonly #deps: WorkerReportsDeps;
  readonly #reported = new Map<string, string>();
  readonly #addresses: ReachableAddresses;
  #readUntil = 0;
  #timer: NodeJS.Timeout | undefined;
  #wasLeading = false;
  #isClosed = false;
  #hasFailed = false;

  constructor(deps: WorkerReportsDeps) {
    this.#deps = deps;
    this.#addresses = new ReachableAddresses(deps.mirror, deps.reach);
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
      const isLeading = this.#deps.isLeading();
      if (isLeading !== this.#wasLeading) this.#restart();
      this.#wasLeading = isLeading;
      if (isLeading) await this.#write();
      else await this.#read();
      this.#hasFailed = false;
    } catch (error) {
      // Said once: the database may be away for long.
      if (!this.#hasFailed && !this.#isClosed)
        this.#deps.log.warn({ err: error }, 'the workers could not be reported between the servers');
      this.#hasFailed = true;
    }
    if (!this.#isClosed) this.start();
  }

  #restart(): void {
    this.#reported.clear();
    this.#readUntil = 0;
    this.#addresses.clear();
    this.#deps.mirror.clear();
  }

  async #write(): Promise<void> {
    const { registry, store, hasPeers } = this.#deps;
    if (!hasPeers()) return this.#reported.clear();
    const isFirst = this.#reported.size === 0;
    const known = new Set(registry.endpointIds());
    // What an earlier leader knew of endpoints that have no workers any more.
    const former = isFirst ? (await store.listReports(0)).reports : [];
    const candidates = new Set([
      ...known,
      ...this.#reported.keys(),
      ...former.map(({ endpointId }) => endpointId),
    ]);
    const changed: WorkerReport[] = [];
    for (const endpointId of candidates) {
      const workerSet = registry.find(endpointId);
      const report = workerSet === undefined ? '' : writeReport(workerSet);
      if (report !== (this.#reported.get(endpointId) ?? (isFirst ? undefined : '')))
        changed.push({ endpointId, report });
    }
    await store.saveReports(changed);
    for (const { endpointId, report } of changed) this.#reported.set(endpointId, report);
  }

  async #read(): Promise<void> {
    const { store, mirror } = this.#deps;
    const { reports, at } = await store.listReports(this.#readUntil);
    this.#readUntil = at;
    for (const { endpointId, report } of reports) {
      if (this.#reported.get(endpointId) === report) continue;
      this.#reported.set(endpointId, report);
      if (report === '') mirror.removeEndpoint(endpointId);
      else readReport(mirror.getOrCreate(endpointId), report);
      for (const worker of mirror.workersOf(endpointId)) this.#addresses.replace(endpointId, worker);
      mirror.changes.notify(endpointId);
    }
    await this.#addresses.find();
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
