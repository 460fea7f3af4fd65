import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { DatabaseKind } from '../../../testing/src/test-database.ts';
import { createMigratedDatabase } from '../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../testing/src/migrated-database.ts';
import type { Delivery, Job, TakenJob } from '../domain/job-records.ts';
import type { JobStore } from '../store/job-store.ts';
import type { Wakeup, WakeupBus } from '../store/wakeup-bus.ts';
import { ManualClock } from '../support/clock.ts';
import { createLog } from '../support/log.ts';
import { JobQueue } from './job-queue.ts';
import type { SubmitRequest } from './job-submitter.ts';
import type { EndpointQueueSettings, JobOptions } from './job-submission.ts';
import type { CloudEventBus } from '../domain/events.ts';
import { EventBus } from '../support/event-bus.ts';

export const SECOND = 1_000;
export const HOUR = 3_600 * SECOND;
export const POLL_MS = 20 * SECOND;

/** A queue over a real store, with a manual clock. */
export class QueueFixture {
  readonly clock = new ManualClock(Date.UTC(2026, 5, 1));
  readonly published: Wakeup[] = [];
  readonly events: CloudEventBus = new EventBus();
  /** Workers that an engine runs. */
  readonly instances = new Set<string>();
  /** Workers that an engine has ended. */
  readonly endedInstances = new Set<string>();
  readonly store: JobStore;
  /** Another server on the same database, with its own memory. */
  readonly otherServerStore: () => JobStore;
  queue: JobQueue;
  /** What another server tells this one. */
  wake: (wakeup: Wakeup) => void = () => undefined;
  readonly #endpoint: EndpointQueueSettings;
  readonly #leaving = new AbortController();

  constructor(
    store: JobStore,
    elsewhere: () => JobStore,
    endpointId: string,
    settings: Partial<EndpointQueueSettings> = {},
  ) {
    this.store = store;
    this.events.subscribe('webhook.due', () => assert.fail('no job here has a webhook'));
    this.otherServerStore = elsewhere;
    this.#endpoint = {
      id: endpointId,
      accountId: 'a',
      executionTimeout: 0,
      jobTtl: 24 * HOUR,
      retention: null,
      maxRetries: 1,
      ...settings,
    };
    this.queue = this.newServer();
  }

  /** A server that restarts on the same store, or another one: `subscribe` receives its wake-ups. */
  newServer(store = this.store, subscribe: WakeupBus['subscribe'] = () => undefined): JobQueue {
    this.queue = new JobQueue({
      store,
      wakeups: {
        publish: (wakeup) => void this.published.push(wakeup),
        subscribe: (handler) => {
          this.wake = handler;
          subscribe(handler);
        },
        close: async () => undefined,
      },
      clock: this.clock,
      instanceRuns: async (_endpointId, workerId) => this.instances.has(workerId),
      instanceEnded: async (_endpointId, workerId) => this.endedInstances.has(workerId),
      log: createLog({ level: 'silent', format: 'json' }),
      deliveryOf: (): Delivery => assert.fail('no job here has a webhook'),
      events: this.events,
    });
    return this.queue;
  }

  get id(): string {
    return this.#endpoint.id;
  }

  submit(terms: JobOptions = {}): Promise<Job> {
    return this.queue.submit(this.request(terms));
  }

  request(terms: JobOptions = {}): SubmitRequest {
    return { endpoint: this.#endpoint, accountId: 'a', request: '{"input":1}', options: terms };
  }

  get signal(): AbortSignal {
    return this.#leaving.signal;
  }

  take(workerId: string, room = 1, signal = this.signal): Promise<TakenJob[]> {
    return this.queue.take(this.id, workerId, room, POLL_MS, signal);
  }

  async takeOne(workerId: string): Promise<Job> {
    const [taken] = await this.take(workerId);
    assert.ok(taken !== undefined);
    return taken.job;
  }

  finish(workerId: string, { seq }: Job, lease?: string): Promise<boolean> {
    return this.queue.finish(this.id, seq, { workerId, lease }, { output: '"done"', error: null });
  }

  async job({ seq }: Job): Promise<Job | undefined> {
    return (await this.queue.find(this.id, seq))?.job;
  }

  async status(job: Job): Promise<string> {
    return (await this.job(job))?.status ?? 'gone';
  }

  async error({ seq }: Job): Promise<string | null | undefined> {
    return (await this.queue.find(this.id, seq))?.payloads.error;
  }

  async sweep(): Promise<void> {
    while (await this.queue.reaper.sweepDue());
    await this.queue.reaper.sweepLost();
  }

  /** Advances the clock in small steps and sweeps after each; `each` runs in between. */
  async advance(milliseconds: number, each: () => void = () => undefined, step = SECOND): Promise<void> {
    for (let passed = 0; passed < milliseconds; passed += step) {
      this.clock.advance(Math.min(step, milliseconds - passed));
      each();
      await this.sweep();
    }
  }

  close(): void {
    this.#leaving.abort();
  }
}

/** A store for the tests of a suite; every call creates a new queue on it. */
export function queueFixtures(
  kind: DatabaseKind,
): (settings?: Partial<EndpointQueueSettings>) => QueueFixture {
  let migrated: MigratedDatabase;
  let store: JobStore;
  const made: QueueFixture[] = [];
  before(async () => {
    migrated = await createMigratedDatabase(kind);
    store = migrated.database.jobs();
  });
  after(async () => {
    for (const bench of made) bench.close();
    await migrated.drop();
  });
  return (settings) => {
    const bench = new QueueFixture(store, () => migrated.database.jobs(), `endpoint${made.length}`, settings);
    made.push(bench);
    return bench;
  };
}
