import { seqFromJobId } from '../../domain/job-ids.ts';
import type { JobWithPayloads } from '../../domain/job-records.ts';
import { ACTION_STATUSES } from '../../domain/job-search-query.ts';
import type { FoundJob, JobAction, JobSearchFilter } from '../../domain/job-search-query.ts';
import type { Caller } from '../../domain/caller.ts';
import type { Endpoint } from '../../domain/records.ts';
import { actOnJobs } from '../../queue/job-bulk-actions.ts';
import type { InputEdit, JobBulkResult } from '../../queue/job-bulk-actions.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import type { ErrorGroup, JobSearcher } from '../../queue/job-searcher.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import type { Endpoints } from './endpoints.ts';

/** A page of jobs; `next` is where the next one begins. */
export interface EndpointJobPage {
  jobs: { found: FoundJob; payloads: JobWithPayloads['payloads'] | undefined }[];
  scanned: number;
  next: number | undefined;
}

/** Which jobs a bulk action is for: those with these ids, or those that match. */
export type BulkTarget =
  | { ids: readonly string[] }
  | { filter: JobSearchFilter; before?: number | undefined; limit: number };

export interface EndpointJobsDeps {
  endpoints: Endpoints;
  queue: JobQueue;
  search: JobSearcher;
}

/** The jobs of an endpoint as its owner manages them: found, grouped by error, and sent again. */
export class EndpointJobs {
  readonly #context: ResourceContext;
  readonly #endpoints: Endpoints;
  readonly #queue: JobQueue;
  readonly #search: JobSearcher;

  constructor(context: ResourceContext, { endpoints, queue, search }: EndpointJobsDeps) {
    this.#context = context;
    this.#endpoints = endpoints;
    this.#queue = queue;
    this.#search = search;
  }

  async list(
    caller: Caller,
    endpointId: string,
    filter: JobSearchFilter,
    page: { before?: number | undefined; limit: number },
  ): Promise<EndpointJobPage> {
    await this.#queueEndpoint(caller, endpointId);
    const { jobs, scanned, next } = await this.#search.search(endpointId, filter, page);
    const read = await this.#search.readSmall(endpointId, jobs);
    return {
      jobs: jobs.map((found) => ({ found, payloads: read.get(found.job.seq)?.payloads })),
      scanned,
      next,
    };
  }

  async get(caller: Caller, endpointId: string, jobId: string): Promise<JobWithPayloads> {
    await this.#queueEndpoint(caller, endpointId);
    const seq = seqFromJobId(jobId);
    const found = seq === undefined ? undefined : await this.#queue.find(endpointId, seq);
    if (found?.job.id !== jobId) throw notFound('job', jobId);
    return found;
  }

  async errorGroups(
    caller: Caller,
    endpointId: string,
    filter: Pick<JobSearchFilter, 'from' | 'to'>,
  ): Promise<{ groups: ErrorGroup[]; scanned: number; complete: boolean }> {
    await this.#queueEndpoint(caller, endpointId);
    return this.#search.errorGroups(endpointId, filter);
  }

  /** `edit`: for a redrive. */
  async act(
    caller: Caller,
    endpointId: string,
    action: JobAction,
    target: BulkTarget,
    edit?: InputEdit,
  ): Promise<JobBulkResult & { next: number | undefined }> {
    const endpoint = await this.#queueEndpoint(caller, endpointId);
    const { ids, next } = await this.#idsOf(endpointId, action, target);
    const result = await actOnJobs(this.#queue, {
      endpoint,
      accountId: caller.accountId,
      action,
      ids,
      edit,
    });
    if (result.done.length > 0)
      await this.#context.store.audit.record(
        auditEntry(this.#context, caller, `${action} jobs`, 'endpoint', endpointId, [
          { field: 'jobs', to: result.done.length },
        ]),
      );
    return { ...result, next };
  }

  async #idsOf(
    endpointId: string,
    action: JobAction,
    target: BulkTarget,
  ): Promise<{ ids: readonly string[]; next: number | undefined }> {
    if ('ids' in target) return { ids: [...new Set(target.ids)], next: undefined };
    const { before, limit, filter } = target;
    const statuses = filter.statuses ?? ACTION_STATUSES[action];
    const { jobs, next } = await this.#search.search(endpointId, { ...filter, statuses }, { before, limit });
    return { ids: jobs.map(({ job }) => job.id), next };
  }

  async #queueEndpoint(caller: Caller, endpointId: string): Promise<Endpoint> {
    const endpoint = await this.#endpoints.get(caller, endpointId);
    if (endpoint.type !== 'QUEUE')
      throw new BerthError('rule', 'not allowed for a load balancing endpoint: it has no queue');
    return endpoint;
  }
}
