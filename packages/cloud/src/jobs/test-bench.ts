import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { DatabaseKind } from '../../../../tests/support/databases.ts';
import { migratedDatabase } from '../../../../tests/support/migrated-database.ts';
import type { MigratedDatabase } from '../../../../tests/support/migrated-database.ts';
import type { Delivery, Job } from '../store/job-records.ts';
import type { JobStore, TakenJob } from '../store/jobs.ts';
import type { Wakeup } from '../store/wakeups.ts';
import { ManualClock } from '../support/clock.ts';
import { createLog } from '../support/log.ts';
import { JobQueue } from './queue.ts';
import type { SubmitRequest } from './queue.ts';
import type { QueueSettings, RequestTerms } from './submission.ts';

export const SECOND = 1_000;
export const HOUR = 3_600 * SECOND;
export const POLL_MS = 20 * SECOND;

/** A queue over a real store, with a clock that is turned by hand. */
export class Bench {
  readonly clock = new ManualClock(Date.UTC(2026, 5, 1));
  readonly published: Wakeup[] = [];
  /** Workers that an engine runs. */
  readonly instances = new Set<string>();
  readonly store: JobStore;
  /** Another server on the same database, with a memory of its own. */
  readonly elsewhere: () => JobStore;
  queue: JobQueue;
  readonly #endpoint: QueueSettings;
  readonly #leaving = new AbortController();

  constructor(
    store: JobStore,
    elsewhere: () => JobStore,
    endpointId: string,
    settings: Partial<QueueSettings> = {},
  ) {
    this.store = store;
    this.elsewhere = elsewhere;
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

  /** A server that starts anew on the same store. */
  newServer(store = this.store): JobQueue {
    this.queue = new JobQueue({
      store,
      wakeups: {
        publish: (wakeup) => void this.published.push(wakeup),
        listen: () => undefined,
        close: async () => undefined,
      },
      clock: this.clock,
      instanceRuns: async (_endpointId, workerId) => this.instances.has(workerId),
      log: createLog({ level: 'silent', format: 'json' }),
      deliveryOf: (): Delivery => assert.fail('no job here has a webhook'),
      onDelivery: () => assert.fail('no job here has a webhook'),
    });
    return this.queue;
  }

  get id(): string {
    return this.#endpoint.id;
  }

  submit(terms: RequestTerms = {}): Promise<Job> {
    return this.queue.submit(this.request(terms));
  }

  request(terms: RequestTerms = {}): SubmitRequest {
    return { endpoint: this.#endpoint, accountId: 'a', request: '{"input":1}', terms };
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
    while (await this.queue.caretaker.sweep());
    await this.queue.caretaker.sweepLost();
  }

  /** Lets time pass in small steps, sweeping after each; `each` is what goes on meanwhile. */
  async pass(milliseconds: number, each: () => void = () => undefined, step = SECOND): Promise<void> {
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

/** A store for the tests of a suite; every call answers a queue of its own on it. */
export function benches(kind: DatabaseKind): (settings?: Partial<QueueSettings>) => Bench {
  let place: MigratedDatabase;
  let store: JobStore;
  const made: Bench[] = [];
  before(async () => {
    place = await migratedDatabase(kind);
    store = place.database.jobs();
  });
  after(async () => {
    for (const bench of made) bench.close();
    await place.drop();
  });
  return (settings) => {
    const bench = new Bench(store, () => place.database.jobs(), `endpoint${made.length}`, settings);
    made.push(bench);
    return bench;
  };
}
