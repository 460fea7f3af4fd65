import type { Pool } from 'pg';
import type { Job, TakenJob, Claim, TakeRequest } from '../../domain/job-records.ts';
import { toColumnArrays } from './column-arrays.ts';
import { queryQueuePool } from './queue-pool.ts';
import { decodeQueueBatch } from './queue-batches.ts';
import { SELECT_REQUESTS, TAKE_FEW, TAKE_MANY, TAKE_FROM_ONE_QUEUE } from './take-jobs-sql.ts';
import {
  isDivisionByZero,
  withTransactionRetries,
  translateErrors,
  RetryTransaction,
} from './transactions.ts';

/** From this many on, the leases of a take are a bundle. Fewer are jobs that somebody may want to know of one by one. */
const MIN_LEASE_BATCH = 8;
/** Where others hold what comes first, a take looks this many times as far. */
const SKIP_LOCKED_REACH = 4;
const CLAIM_COLUMNS = ['worker_id', 'lease'];

export interface TakeResult {
  taken: TakenJob[];
  /** The bundle in which their leases are. */
  leaseBatchId: string | undefined;
  /** Others wait that are in somebody's hands. */
  skippedLocked: boolean;
}

interface DequeuedJob {
  job: Job;
  request: string;
}

/** For each place that jobs are taken from: which claims they are for, and they. */
type TakenBatch = [turns: string | null, jobs: string | null];

/** Takes from the queue. */
export class JobTaker {
  readonly #lanes: Pool;
  readonly #server: string;
  /** The account that was served last on each endpoint: the next one goes first. */
  readonly #lastServed = new Map<string, string>();
  /** How many jobs a place of each endpoint held, as the last take found it; 0 where the short way was none. */
  readonly #perPlace = new Map<string, number>();

  constructor(lanes: Pool, server: string) {
    this.#lanes = lanes;
    this.#server = server;
  }

  deleteEndpoint(endpointId: string): void {
    this.#lastServed.delete(endpointId);
    this.#perPlace.delete(endpointId);
  }

  async take(
    endpointId: string,
    { takenAt, leaseCheckAt, startAttempt }: TakeRequest,
    claims: readonly Claim[],
  ): Promise<TakeResult> {
    const isBundle = claims.length >= MIN_LEASE_BATCH;
    const common = [
      endpointId,
      claims.length,
      ...toColumnArrays(
        claims.map(({ workerId, lease }) => [workerId, lease]),
        CLAIM_COLUMNS,
      ),
      takenAt,
      leaseCheckAt,
      `${this.#server} take`,
    ];
    let jobs = isBundle ? await this.#takeStraight(endpointId, claims.length, common) : [];
    let passedOver = false;
    if (jobs.length === 0 && claims.length > 0) {
      const inTurn = (reach: number): Promise<TakenBatch[]> =>
        this.#run(isBundle ? TAKE_MANY : TAKE_FEW, [
          ...common,
          this.#lastServed.get(endpointId) ?? '',
          reach,
        ]);
      ({ jobs, passedOver } = decodeTakenBatches(endpointId, await inTurn(claims.length)));
      if (jobs.length === 0 && passedOver)
        ({ jobs, passedOver } = decodeTakenBatches(
          endpointId,
          await inTurn(SKIP_LOCKED_REACH * claims.length),
        ));
    }
    const last = jobs.at(-1);
    if (last !== undefined) this.#lastServed.set(endpointId, last.job.accountId);
    const waiting = await this.#withRequests(endpointId, jobs);
    const taken = waiting.map(({ job, request, turn }) => ({
      job: startAttempt(job, claims[turn] as Claim).job,
      request,
    }));
    return {
      taken,
      leaseBatchId: isBundle && jobs.length > 0 ? claims[0]?.lease : undefined,
      skippedLocked: passedOver,
    };
  }

  /** Nothing where the short way is none. That is found out anew each time but the next. */
  async #takeStraight(
    endpointId: string,
    wanted: number,
    common: readonly unknown[],
  ): Promise<DequeuedJob[]> {
    const perPlace = this.#perPlace.get(endpointId) ?? 1;
    if (perPlace === 0) {
      this.#perPlace.delete(endpointId);
      return [];
    }
    const rows = await this.#run(TAKE_FROM_ONE_QUEUE, [...common, 2 * Math.ceil(wanted / perPlace) + 1]);
    const jobs = rows.flatMap(([, text]) => decodeQueueBatch(endpointId, text ?? ''));
    this.#perPlace.set(endpointId, rows.length === 0 ? 0 : jobs.length / rows.length);
    return jobs;
  }

  #run(statement: { name: string; text: string }, values: unknown[]): Promise<TakenBatch[]> {
    return withTransactionRetries(async () => {
      try {
        return await translateErrors(queryQueuePool<TakenBatch>(this.#lanes, { ...statement, values }));
      } catch (error) {
        throw isDivisionByZero(error) ? new RetryTransaction('a place changed while it was taken') : error;
      }
    });
  }

  /** Reads the requests that were not carried along. A job that is gone by now is left out. */
  async #withRequests(
    endpointId: string,
    jobs: readonly DequeuedJob[],
  ): Promise<(DequeuedJob & { turn: number })[]> {
    const missing = jobs.filter(({ request }) => request === '').map(({ job }) => job.seq);
    const read = new Map(
      missing.length === 0
        ? []
        : await translateErrors(
            queryQueuePool<[number, string]>(this.#lanes, {
              ...SELECT_REQUESTS,
              values: [endpointId, missing],
            }),
          ),
    );
    return jobs
      .map(({ job, request }, turn) => ({
        job,
        request: request === '' ? (read.get(job.seq) ?? '') : request,
        turn,
      }))
      .filter(({ request }) => request !== '');
  }
}

function decodeTakenBatches(
  endpointId: string,
  rows: readonly TakenBatch[],
): { jobs: DequeuedJob[]; passedOver: boolean } {
  const jobs: DequeuedJob[] = [];
  for (const [turns, text] of rows) {
    if (turns === null || text === null) continue;
    const order = turns.split(' ');
    for (const [index, waiting] of decodeQueueBatch(endpointId, text).entries())
      jobs[Number(order[index]) - 1] = waiting;
  }
  return { jobs, passedOver: rows.at(-1)?.[0] === null };
}
