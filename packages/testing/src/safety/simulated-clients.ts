import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { SeededRandom } from './seeded-random.ts';
import type { HistoryEvent, Observation } from './job-history.ts';
import { monotonicMs } from './job-history.ts';
import { callHttp } from './http-call.ts';
import type { HttpReply } from './http-call.ts';
import type { SafetyJobInput } from './job-attempt.ts';

const WEEK = 7 * 86_400_000;
const RETRY_MS = 30;
/** Status calls under way at the same time while a run settles. */
const CONCURRENT_READS = 16;

export interface SimulatedClientsOptions {
  server(): string;
  endpointId: string;
  key: string;
  history: HistoryEvent[];
  random: SeededRandom;
  /** Milliseconds that a job of this run takes. */
  jobDurationMs: { least: number; most: number };
  /** Of a hundred steps of a client, how many are not a submission. */
  disruptions: { cancel: number; retry: number; purge: number };
  /** Whether streams are read when all has settled. */
  streams: boolean;
  /** How many of the submissions wait for the end. */
  syncShare?: number;
}

interface JobResponse {
  id: string;
  status: Observation['status'];
  output?: unknown;
  error?: unknown;
  input?: SafetyJobInput;
}

/** Clients that submit, read, cancel and retry jobs, and record all answers. */
export class SimulatedClients {
  readonly #options: SimulatedClientsOptions;
  /** Acknowledged ids, with the last state that was seen. */
  readonly #known = new Map<string, Observation['status'] | undefined>();
  readonly #streaming = new Set<string>();
  #count = 0;

  constructor(options: SimulatedClientsOptions) {
    this.#options = options;
  }

  get jobs(): number {
    return this.#known.size;
  }

  /** What the jobs came to. */
  tally(): Record<string, number> {
    const tally: Record<string, number> = {};
    for (const status of this.#known.values())
      tally[status ?? 'unseen'] = (tally[status ?? 'unseen'] ?? 0) + 1;
    return tally;
  }

  /** Several people at work at the same time, until it is enough. */
  async runClients(
    people: number,
    pace: { least: number; most: number },
    enough: () => boolean,
  ): Promise<void> {
    const { random, disruptions } = this.#options;
    const one = async (): Promise<void> => {
      while (!enough()) {
        const dice = random.between(0, 99);
        if (dice < disruptions.cancel) await this.cancel(this.#freshJob());
        else if (dice < disruptions.cancel + disruptions.retry)
          await this.retry(this.#anyJob('FAILED') ?? this.#anyJob());
        else if (dice < disruptions.cancel + disruptions.retry + disruptions.purge) await this.purge();
        else if (dice < 70) await this.submit(enough);
        else await this.observe(this.#anyJob());
        await pause(random.between(pace.least, pace.most));
      }
    };
    await Promise.all(Array.from({ length: people }, one));
  }

  async submit(enough: () => boolean = () => false): Promise<void> {
    const { random, jobDurationMs, history, syncShare = 0.3 } = this.#options;
    const value = `value-${++this.#count}`;
    const key = random.chance(0.5) ? `key-${this.#count}` : null;
    const sync = random.chance(syncShare);
    const input: SafetyJobInput = {
      value,
      milliseconds: random.between(jobDurationMs.least, jobDurationMs.most),
      chunks: random.chance(0.25) ? random.between(1, 3) : 0,
      progress: random.chance(0.1),
      fails: random.chance(0.1),
    };
    const body = { input, policy: { ttl: WEEK }, retention: WEEK };
    const path = sync ? `runsync?wait=${random.between(1_000, 5_000)}` : 'run';
    for (;;) {
      const from = monotonicMs();
      const reply = await this.#send('POST', path, body, key === null ? {} : { 'idempotency-key': key });
      const to = monotonicMs();
      const answered = reply?.status === 200 ? (reply.body as JobResponse) : undefined;
      if (reply !== undefined && reply.status < 500)
        assert.equal(reply.status, 200, `a good submission was answered ${reply.status} ${reply.text}`);
      history.push({ kind: 'submission', value, key, id: answered?.id ?? null, from, to });
      if (answered !== undefined) {
        if (input.chunks > 0) this.#streaming.add(answered.id);
        if (sync) this.#saw(answered, from, to);
        else this.#known.set(answered.id, answered.status);
        return;
      }
      // Without a key, saying it again could make two jobs of it; with one, saying it again is what the key
      // is for.
      if (key === null || enough()) return;
      await pause(RETRY_MS);
    }
  }

  async observe(id: string | undefined): Promise<Observation['status'] | undefined> {
    if (id === undefined) return undefined;
    const from = monotonicMs();
    const reply = await this.#send('GET', `status/${id}`);
    const to = monotonicMs();
    if (reply?.status === 404) this.#saw({ id, status: 'GONE' }, from, to);
    else if (reply?.status === 200) this.#saw(reply.body as JobResponse, from, to);
    else return undefined;
    return this.#known.get(id);
  }

  async cancel(id: string | undefined): Promise<void> {
    if (id === undefined) return;
    const from = monotonicMs();
    this.#options.history.push({ kind: 'cancel', id, from });
    const reply = await this.#send('POST', `cancel/${id}`);
    if (reply?.status === 200) this.#saw(reply.body as JobResponse, from, monotonicMs(), true);
  }

  async retry(id: string | undefined): Promise<void> {
    if (id === undefined) return;
    const from = monotonicMs();
    const reply = await this.#send('POST', `retry/${id}`);
    const outcome =
      reply === undefined || reply.status >= 500 ? 'unknown' : reply.status === 200 ? 'accepted' : 'refused';
    this.#options.history.push({ kind: 'retry', id, outcome, from, to: monotonicMs() });
    if (outcome === 'accepted') this.#known.set(id, 'IN_QUEUE');
  }

  async purge(): Promise<void> {
    this.#options.history.push({ kind: 'purge', from: monotonicMs() });
    await this.#send('POST', 'purge-queue');
  }

  /**
   * Looks until every job has ended: those we know and those of submissions that nobody acknowledged. Then
   * once more at all of them.
   */
  async waitForAllEnds(milliseconds: number): Promise<void> {
    const until = Date.now() + milliseconds;
    await this.list();
    for (let open = this.#open(); open.length > 0 && Date.now() < until; open = this.#open()) {
      await this.#each(open, (id) => this.observe(id));
      await pause(RETRY_MS);
    }
    await this.list();
    await this.#each([...this.#known.keys()], (id) => this.observe(id));
    if (this.#options.streams) await this.#each([...this.#streaming], (id) => this.#readStream(id));
  }

  /** Every job that the endpoint lists. */
  async list(): Promise<void> {
    for (let offset = 0; ; ) {
      const from = monotonicMs();
      const reply = await this.#send('GET', `requests?limit=1000&offset=${offset}`);
      if (reply?.status !== 200) {
        await pause(RETRY_MS);
        continue;
      }
      const { requests } = reply.body as { requests: JobResponse[] };
      for (const job of requests) this.#saw(job, from, monotonicMs());
      if (requests.length < 1000) return;
      offset += requests.length;
    }
  }

  async health(): Promise<{ inQueue: number; inProgress: number }> {
    const reply = await this.#send('GET', 'health');
    return (reply?.body as { jobs: { inQueue: number; inProgress: number } }).jobs;
  }

  async #readStream(id: string): Promise<void> {
    const status = this.#known.get(id);
    if (status !== 'COMPLETED' && status !== 'FAILED') return;
    const reply = await this.#send('GET', `stream/${id}`, undefined, { accept: 'text/event-stream' });
    assert.equal(reply?.status, 200, `the stream of ${id} was answered ${reply?.status} ${reply?.text}`);
    const data = reply.text
      .split('\n')
      .filter((line) => line.startsWith('data: '))
      .map((line) => JSON.parse(line.slice(6)) as { output: { marker: string; number?: number } });
    // A job that streamed nothing shows its whole output instead.
    const chunks = data.flatMap(({ output: { marker, number } }) =>
      number === undefined ? [] : [{ marker, number }],
    );
    this.#options.history.push({ kind: 'stream', id, chunks });
  }

  #saw({ id, status, output, error, input }: JobResponse, from: number, to: number, brief = false): void {
    this.#known.set(id, status);
    if (input !== undefined && input.chunks > 0) this.#streaming.add(id);
    this.#options.history.push({
      kind: 'observation',
      id,
      status,
      output: text(output),
      error: text(error),
      brief,
      value: input?.value ?? null,
      from,
      to,
    });
  }

  #open(): string[] {
    return [...this.#known]
      .filter(([, status]) => status === undefined || status === 'IN_QUEUE' || status === 'IN_PROGRESS')
      .map(([id]) => id);
  }

  #anyJob(status?: Observation['status']): string | undefined {
    const ids =
      status === undefined
        ? [...this.#known.keys()]
        : [...this.#known].filter(([, known]) => known === status).map(([id]) => id);
    return this.#options.random.pick(ids);
  }

  /** One of the last that were submitted: it may still wait or run. */
  #freshJob(): string | undefined {
    return this.#options.random.pick([...this.#known.keys()].slice(-10));
  }

  async #each(ids: readonly string[], look: (id: string) => Promise<unknown>): Promise<void> {
    const left = [...ids];
    const one = async (): Promise<void> => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) await look(id);
    };
    await Promise.all(Array.from({ length: CONCURRENT_READS }, one));
  }

  #send(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<HttpReply | undefined> {
    const { server, endpointId, key } = this.#options;
    return callHttp({
      method,
      url: `${server()}/v2/${endpointId}/${path}`,
      authorization: `Bearer ${key}`,
      body,
      headers,
    });
  }
}

function text(value: unknown): string | null {
  return value === undefined || value === null ? null : JSON.stringify(value);
}
