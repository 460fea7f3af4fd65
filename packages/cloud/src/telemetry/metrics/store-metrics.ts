import type { Registry } from 'prom-client';
import type { StoreObserver } from '../../store/store-observer.ts';
import { SeriesHistogram } from './series-histogram.ts';

const COMMIT_BOUNDS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
const BATCH_BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000];

/** The commits of the database, as this server sees them. It is there before the store, which it observes. */
export class StoreMetrics implements StoreObserver {
  readonly #histograms = {
    commits: new SeriesHistogram('berth_store_commit_seconds', 'Time of a commit', COMMIT_BOUNDS_SECONDS),
    batches: new SeriesHistogram(
      'berth_store_commit_operations',
      'Operations that were committed together',
      BATCH_BOUNDS,
    ),
    syncs: new SeriesHistogram(
      'berth_store_sync_seconds',
      'Time until the disk had what was committed (SQLite; PostgreSQL does it within the commit)',
      COMMIT_BOUNDS_SECONDS,
    ),
  };
  readonly #commits = this.#histograms.commits.series({});
  readonly #batches = this.#histograms.batches.series({});
  readonly #syncs = this.#histograms.syncs.series({});

  committed(operations: number, milliseconds: number): void {
    this.#commits.observe(milliseconds / 1000);
    this.#batches.observe(operations);
  }

  synced(milliseconds: number): void {
    this.#syncs.observe(milliseconds / 1000);
  }

  expose(registry: Registry): void {
    for (const histogram of Object.values(this.#histograms)) histogram.register(registry);
  }
}
