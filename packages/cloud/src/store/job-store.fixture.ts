import { createMigratedDatabase } from '../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../testing/src/migrated-database.ts';
import type { DatabaseKind } from '../../../testing/src/test-database.ts';
import type { Job, JobWithPayloads } from '../domain/job-records.ts';
import * as transitions from '../domain/job-transitions.ts';
import { newJob } from '../queue/job-submission.ts';
import type { JobOptions } from '../queue/job-submission.ts';
import type { JobStore } from './job-store.ts';
import { rows, sql } from './sql.ts';
import { NOW, queueSettings } from './queue-settings.fixture.ts';

/** A job store on a database of its own, and short ways to fill it and to take from it. */
export class JobStoreFixture {
  readonly #kind: DatabaseKind;
  #place: MigratedDatabase | undefined;
  #store: JobStore | undefined;
  #number = 0;
  #leases = 0;

  constructor(kind: DatabaseKind) {
    this.#kind = kind;
  }

  async open(): Promise<JobStore> {
    this.#place = await createMigratedDatabase(this.#kind);
    this.#store = this.#place.database.jobs();
    return this.#store;
  }

  close = async (): Promise<void> => this.#place?.drop();

  /** How many requests are stored, of all endpoints. */
  readonly countRequests = async (): Promise<number | undefined> => {
    const found = await this.#place?.database.read(function* () {
      return yield* rows<{ count: number }>(sql`select count(*) as count from job_requests`);
    });
    return found && Number(found[0]?.count);
  };

  readonly made = (endpointId: string, terms: JobOptions = {}, accountId = 'one'): JobWithPayloads => {
    const number = ++this.#number;
    const request = `{"input":{"n":${number},"big":9007199254740993,"float":1.0}}`;
    return newJob(queueSettings(endpointId), accountId, request, terms, number, NOW);
  };

  readonly submit = async (endpointId: string, terms: JobOptions = {}, accountId = 'one'): Promise<Job> =>
    (await this.#opened.submit(this.made(endpointId, terms, accountId))).job;

  readonly takeAll = (endpointId: string, wanted = 100, worker = 'w1'): ReturnType<JobStore['take']> =>
    this.#opened.take(
      endpointId,
      transitions.takeRequest(
        () => Array.from({ length: wanted }, () => ({ workerId: worker, lease: `lease ${++this.#leases}` })),
        NOW + 5,
      ),
    );

  /** By another server, where there may be one: what this one remembers of the endpoint is stale then. */
  readonly submitElsewhere = async (endpointId: string, accountId: string): Promise<Job> => {
    const store = this.#kind === 'postgres' ? this.#place?.database.jobs() : this.#store;
    return (await (store ?? this.#opened).submit(this.made(endpointId, {}, accountId))).job;
  };

  get #opened(): JobStore {
    if (this.#store === undefined) throw new Error('the job store is not open yet');
    return this.#store;
  }
}
