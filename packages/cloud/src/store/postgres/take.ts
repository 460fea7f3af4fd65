import type { Pool } from 'pg';
import type { Job } from '../job-records.ts';
import type { Claim, TakenJob, TakeTerms } from '../jobs.ts';
import { columnsOf } from './arrays.ts';
import { isDivisionByZero, retried, translated, TryAgain } from './database.ts';
import { queryLane } from './lanes.ts';
import { readPlace } from './places.ts';
import { REQUESTS, TAKE_FEW, TAKE_MANY, TAKE_STRAIGHT } from './take-statements.ts';

/** From this many on, the leases of a take are a bundle. Fewer are jobs that somebody may want to know of one by one. */
const FEWEST_IN_BUNDLE = 8;
/** Where others hold what comes first, a take looks this many times as far. */
const FURTHER = 4;
const CLAIM = ['worker_id', 'lease'];

export interface Handed {
  taken: TakenJob[];
  /** The bundle in which their leases are. */
  bundle: string | undefined;
  /** Others wait that are in somebody's hands. */
  passedOver: boolean;
}

interface Waiting {
  job: Job;
  request: string;
}

/** For each place that jobs are taken from: which claims they are for, and they. */
type TakenPlace = [turns: string | null, jobs: string | null];

/** Takes from the queue. */
export class Takes {
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

  forget(endpointId: string): void {
    this.#lastServed.delete(endpointId);
    this.#perPlace.delete(endpointId);
  }

  async take(
    endpointId: string,
    { takenAt, lookAt, begin }: TakeTerms,
    claims: readonly Claim[],
  ): Promise<Handed> {
    const isBundle = claims.length >= FEWEST_IN_BUNDLE;
    const common = [
      endpointId,
      claims.length,
      ...columnsOf(
        claims.map(({ workerId, lease }) => [workerId, lease]),
        CLAIM,
      ),
      takenAt,
      lookAt,
      `${this.#server} take`,
    ];
    let jobs = isBundle ? await this.#takeStraight(endpointId, claims.length, common) : [];
    let passedOver = false;
    if (jobs.length === 0 && claims.length > 0) {
      const inTurn = (reach: number): Promise<TakenPlace[]> =>
        this.#run(isBundle ? TAKE_MANY : TAKE_FEW, [
          ...common,
          this.#lastServed.get(endpointId) ?? '',
          reach,
        ]);
      ({ jobs, passedOver } = readTurns(endpointId, await inTurn(claims.length)));
      if (jobs.length === 0 && passedOver)
        ({ jobs, passedOver } = readTurns(endpointId, await inTurn(FURTHER * claims.length)));
    }
    const last = jobs.at(-1);
    if (last !== undefined) this.#lastServed.set(endpointId, last.job.accountId);
    const waiting = await this.#withRequests(endpointId, jobs);
    const taken = waiting.map(({ job, request, turn }) => ({
      job: begin(job, claims[turn] as Claim).job,
      request,
    }));
    return { taken, bundle: isBundle && jobs.length > 0 ? claims[0]?.lease : undefined, passedOver };
  }

  /** Nothing where the short way is none. That is found out anew each time but the next. */
  async #takeStraight(endpointId: string, wanted: number, common: readonly unknown[]): Promise<Waiting[]> {
    const perPlace = this.#perPlace.get(endpointId) ?? 1;
    if (perPlace === 0) {
      this.#perPlace.delete(endpointId);
      return [];
    }
    const rows = await this.#run(TAKE_STRAIGHT, [...common, 2 * Math.ceil(wanted / perPlace) + 1]);
    const jobs = rows.flatMap(([, text]) => readPlace(endpointId, text ?? ''));
    this.#perPlace.set(endpointId, rows.length === 0 ? 0 : jobs.length / rows.length);
    return jobs;
  }

  #run(statement: { name: string; text: string }, values: unknown[]): Promise<TakenPlace[]> {
    return retried(async () => {
      try {
        return await translated(queryLane<TakenPlace>(this.#lanes, { ...statement, values }));
      } catch (error) {
        throw isDivisionByZero(error) ? new TryAgain('a place changed while it was taken') : error;
      }
    });
  }

  /** Reads the requests that were not carried along. A job that is gone by now is left out. */
  async #withRequests(endpointId: string, jobs: readonly Waiting[]): Promise<(Waiting & { turn: number })[]> {
    const missing = jobs.filter(({ request }) => request === '').map(({ job }) => job.seq);
    const read = new Map(
      missing.length === 0
        ? []
        : await translated(
            queryLane<[number, string]>(this.#lanes, { ...REQUESTS, values: [endpointId, missing] }),
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

function readTurns(
  endpointId: string,
  rows: readonly TakenPlace[],
): { jobs: Waiting[]; passedOver: boolean } {
  const jobs: Waiting[] = [];
  for (const [turns, text] of rows) {
    if (turns === null || text === null) continue;
    const order = turns.split(' ');
    for (const [index, waiting] of readPlace(endpointId, text).entries())
      jobs[Number(order[index]) - 1] = waiting;
  }
  return { jobs, passedOver: rows.at(-1)?.[0] === null };
}
