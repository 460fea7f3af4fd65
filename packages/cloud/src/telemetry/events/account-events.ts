import type { AccountEvent } from '../../domain/account-event.ts';
import type { Release, Worker } from '../../domain/endpoints/worker-record.ts';
import type { CloudEventBus } from '../../domain/events.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';
import type { Endpoint, NetworkVolume } from '../../domain/records.ts';
import type { Log } from '../../support/log.ts';
import type { EventFeed, FeedItem, ReadOptions } from './event-feed.ts';
import { JobChangeCollector } from './job-change-collector.ts';

/** An endpoint that changed has a new release if that is younger than this. */
const NEW_RELEASE_MS = 10_000;
const MAX_KNOWN_VERSIONS = 10_000;

export interface AccountEventsDeps {
  feed: EventFeed;
  events: CloudEventBus;
  endpoint(id: string): Promise<Endpoint | undefined>;
  latestRelease(endpointId: string): Promise<Release | undefined>;
  worker(endpointId: string, workerId: string): Promise<Worker | undefined>;
  pod(id: string): Promise<Pod | undefined>;
  volume(accountId: string, id: string): Promise<NetworkVolume | undefined>;
  now(): number;
  log: Log;
}

/**
 * Turns what happens on this server, and what others announce, into the events of accounts. Reads the store
 * for what an event shows, and only while somebody reads events.
 */
export class AccountEvents {
  readonly #deps: AccountEventsDeps;
  readonly #jobs: JobChangeCollector;
  /** The version that each endpoint was last seen at. */
  readonly #versions = new Map<string, number>();
  /**
   * What is being read, and whether it changed again meanwhile: many changes of one thing are read together.
   */
  readonly #reading = new Map<string, { again: boolean }>();

  constructor(deps: AccountEventsDeps) {
    this.#deps = deps;
    this.#jobs = new JobChangeCollector((endpointId, changes, jobs) =>
      this.#logFailure(this.#describeJobs({ type: 'job.changed', endpointId, changes, jobs })),
    );
    this.#subscribe();
  }

  read(options: ReadOptions): AsyncGenerator<FeedItem> {
    return this.#deps.feed.read(options);
  }

  close(): void {
    this.#jobs.close();
    this.#deps.feed.close();
  }

  #subscribe(): void {
    const { events, feed } = this.#deps;
    events.subscribe('job.changed', ({ job }) => {
      if (feed.isActive) this.#jobs.add(job);
    });
    events.subscribe('jobs.changed', ({ endpointId }) => {
      if (feed.isActive) this.#jobs.touch(endpointId);
    });
    events.subscribe('endpoint.changed', ({ endpointId }) => {
      if (endpointId !== undefined)
        this.#describe(`endpoint ${endpointId}`, () => this.#describeEndpoint(endpointId));
    });
    events.subscribe('endpoint.removed', ({ endpointId, accountId }) => {
      this.#versions.delete(endpointId);
      this.#add(accountId, { type: 'endpoint.deleted', endpointId });
    });
    events.subscribe('worker.changed', ({ endpointId, workerId }) =>
      this.#describe(`worker ${workerId}`, () => this.#describeWorker(endpointId, workerId)),
    );
    events.subscribe('pod.changed', ({ podId }) =>
      this.#describe(`pod ${podId}`, () => this.#describePod(podId)),
    );
    events.subscribe('volume.changed', ({ accountId, volumeId }) =>
      this.#describe(`volume ${volumeId}`, () => this.#describeVolume(accountId, volumeId)),
    );
    events.subscribe('quota.changed', ({ accountId, limit, maximum }) =>
      this.#add(accountId, { type: 'quota.changed', limit, maximum }),
    );
    events.subscribe('quota.warning', ({ accountId, limit, ratio }) =>
      this.#add(accountId, { type: 'quota.warning', limit, usedRatio: ratio }),
    );
  }

  #add(accountId: string, event: AccountEvent): void {
    this.#deps.feed.add(accountId, event);
  }

  /** Runs `read` for the thing of this key; if it changes meanwhile, once more afterwards. */
  #describe(key: string, read: () => Promise<void>): void {
    if (!this.#deps.feed.isActive) return;
    const running = this.#reading.get(key);
    if (running !== undefined) {
      running.again = true;
      return;
    }
    const state = { again: false };
    this.#reading.set(key, state);
    this.#logFailure(
      read().finally(() => {
        this.#reading.delete(key);
        if (state.again) this.#describe(key, read);
      }),
    );
  }

  #logFailure(describing: Promise<void>): void {
    describing.catch((error: unknown) =>
      this.#deps.log.warn({ err: error }, 'an event could not be created; readers miss it'),
    );
  }

  async #describeJobs(event: AccountEvent & { type: 'job.changed' }): Promise<void> {
    const endpoint = await this.#deps.endpoint(event.endpointId);
    if (endpoint !== undefined) this.#add(endpoint.accountId, event);
  }

  async #describeEndpoint(endpointId: string): Promise<void> {
    const endpoint = await this.#deps.endpoint(endpointId);
    if (endpoint === undefined) return;
    const { accountId, name, version } = endpoint;
    this.#add(accountId, { type: 'endpoint.changed', endpointId, name, version });
    if (this.#versions.get(endpointId) === version) return;
    if (this.#versions.size >= MAX_KNOWN_VERSIONS) this.#versions.clear();
    this.#versions.set(endpointId, version);
    const release = await this.#deps.latestRelease(endpointId);
    if (release !== undefined && this.#deps.now() - release.createdAt < NEW_RELEASE_MS)
      this.#add(accountId, { type: 'release.created', endpointId, version: release.version });
  }

  async #describeWorker(endpointId: string, workerId: string): Promise<void> {
    const worker = await this.#deps.worker(endpointId, workerId);
    if (worker === undefined) return;
    const { accountId, state, reason } = worker;
    this.#add(accountId, { type: 'worker.changed', endpointId, workerId, state, reason });
  }

  async #describePod(podId: string): Promise<void> {
    const pod = await this.#deps.pod(podId);
    if (pod === undefined) return;
    const { accountId, name, status, statusDetail } = pod;
    this.#add(accountId, { type: 'pod.changed', podId, name, status, statusDetail });
  }

  async #describeVolume(accountId: string, volumeId: string): Promise<void> {
    const volume = await this.#deps.volume(accountId, volumeId);
    this.#add(
      accountId,
      volume === undefined
        ? { type: 'volume.deleted', volumeId }
        : { type: 'volume.changed', volumeId, name: volume.name, size: volume.size },
    );
  }
}
