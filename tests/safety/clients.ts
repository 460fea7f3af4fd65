import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { Chance } from './chance.ts';
import type { Event, Observation } from './history.ts';
import { instant } from './history.ts';
import { call } from './http.ts';
import type { Reply } from './http.ts';
import type { Input } from './work.ts';

const WEEK = 7 * 86_400_000;
const AGAIN_MS = 30;
/** Status calls under way at the same time while a run settles. */
const LOOKS = 16;

export interface ClientOptions {
  server(): string;
  endpointId: string;
  key: string;
  history: Event[];
  chance: Chance;
  /** Milliseconds that a job of this run takes. */
  work: { least: number; most: number };
  /** Of a hundred steps of a client, how many are not a submission. */
  mischief: { cancel: number; retry: number; purge: number };
  /** Whether streams are read when all has settled. */
  streams: boolean;
  /** How many of the submissions wait for the end. */
  waiting?: number;
}

interface JobAnswer {
  id: string;
  status: Observation['status'];
  output?: unknown;
  error?: unknown;
  input?: Input;
}

/** People who hand in jobs, look at them, cancel and retry them, and write down all they were told. */
export class Clients {
  readonly #options: ClientOptions;
  /** Ids that were told to us, and the last state that we saw. */
  readonly #known = new Map<string, Observation['status'] | undefined>();
  readonly #streaming = new Set<string>();
  #count = 0;

  constructor(options: ClientOptions) {
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
  async work(people: number, pace: { least: number; most: number }, enough: () => boolean): Promise<void> {
    const { chance, mischief } = this.#options;
    const one = async (): Promise<void> => {
      while (!enough()) {
        const dice = chance.between(0, 99);
        if (dice < mischief.cancel) await this.cancel(this.#freshJob());
        else if (dice < mischief.cancel + mischief.retry)
          await this.retry(this.#anyJob('FAILED') ?? this.#anyJob());
        else if (dice < mischief.cancel + mischief.retry + mischief.purge) await this.purge();
        else if (dice < 70) await this.submit(enough);
        else await this.observe(this.#anyJob());
        await pause(chance.between(pace.least, pace.most));
      }
    };
    await Promise.all(Array.from({ length: people }, one));
  }

  async submit(enough: () => boolean = () => false): Promise<void> {
    const { chance, work, history, waiting = 0.3 } = this.#options;
    const value = `value-${++this.#count}`;
    const key = chance.happens(0.5) ? `key-${this.#count}` : null;
    const sync = chance.happens(waiting);
    const input: Input = {
      value,
      milliseconds: chance.between(work.least, work.most),
      chunks: chance.happens(0.25) ? chance.between(1, 3) : 0,
      progress: chance.happens(0.1),
      fails: chance.happens(0.1),
    };
    const body = { input, policy: { ttl: WEEK }, retention: WEEK };
    const path = sync ? `runsync?wait=${chance.between(1_000, 5_000)}` : 'run';
    for (;;) {
      const from = instant();
      const reply = await this.#send('POST', path, body, key === null ? {} : { 'idempotency-key': key });
      const to = instant();
      const told = reply?.status === 200 ? (reply.body as JobAnswer) : undefined;
      if (reply !== undefined && reply.status < 500)
        assert.equal(reply.status, 200, `a good submission was answered ${reply.status} ${reply.text}`);
      history.push({ kind: 'submission', value, key, id: told?.id ?? null, from, to });
      if (told !== undefined) {
        if (input.chunks > 0) this.#streaming.add(told.id);
        if (sync) this.#saw(told, from, to);
        else this.#known.set(told.id, told.status);
        return;
      }
      // Without a key, saying it again could make two jobs of it; with one, saying it again is what the key is for.
      if (key === null || enough()) return;
      await pause(AGAIN_MS);
    }
  }

  async observe(id: string | undefined): Promise<Observation['status'] | undefined> {
    if (id === undefined) return undefined;
    const from = instant();
    const reply = await this.#send('GET', `status/${id}`);
    const to = instant();
    if (reply?.status === 404) this.#saw({ id, status: 'GONE' }, from, to);
    else if (reply?.status === 200) this.#saw(reply.body as JobAnswer, from, to);
    else return undefined;
    return this.#known.get(id);
  }

  async cancel(id: string | undefined): Promise<void> {
    if (id === undefined) return;
    const from = instant();
    this.#options.history.push({ kind: 'cancel', id, from });
    const reply = await this.#send('POST', `cancel/${id}`);
    if (reply?.status === 200) this.#saw(reply.body as JobAnswer, from, instant(), true);
  }

  async retry(id: string | undefined): Promise<void> {
    if (id === undefined) return;
    const from = instant();
    const reply = await this.#send('POST', `retry/${id}`);
    const outcome =
      reply === undefined || reply.status >= 500 ? 'unknown' : reply.status === 200 ? 'accepted' : 'refused';
    this.#options.history.push({ kind: 'retry', id, outcome, from, to: instant() });
    if (outcome === 'accepted') this.#known.set(id, 'IN_QUEUE');
  }

  async purge(): Promise<void> {
    this.#options.history.push({ kind: 'purge', from: instant() });
    await this.#send('POST', 'purge-queue');
  }

  /** Looks until every job has ended: those we know and those of submissions that nobody acknowledged. Then once more at all of them. */
  async settle(milliseconds: number): Promise<void> {
    const until = Date.now() + milliseconds;
    await this.list();
    for (let open = this.#open(); open.length > 0 && Date.now() < until; open = this.#open()) {
      await this.#each(open, (id) => this.observe(id));
      await pause(AGAIN_MS);
    }
    await this.list();
    await this.#each([...this.#known.keys()], (id) => this.observe(id));
    if (this.#options.streams) await this.#each([...this.#streaming], (id) => this.#readStream(id));
  }

  /** Every job that the endpoint lists. */
  async list(): Promise<void> {
    for (let offset = 0; ; ) {
      const from = instant();
      const reply = await this.#send('GET', `requests?limit=1000&offset=${offset}`);
      if (reply?.status !== 200) {
        await pause(AGAIN_MS);
        continue;
      }
      const { requests } = reply.body as { requests: JobAnswer[] };
      for (const job of requests) this.#saw(job, from, instant());
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

  #saw({ id, status, output, error, input }: JobAnswer, from: number, to: number, brief = false): void {
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
    return this.#options.chance.pick(ids);
  }

  /** One of the last that were handed in: it may still wait or run. */
  #freshJob(): string | undefined {
    return this.#options.chance.pick([...this.#known.keys()].slice(-10));
  }

  async #each(ids: readonly string[], look: (id: string) => Promise<unknown>): Promise<void> {
    const left = [...ids];
    const one = async (): Promise<void> => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) await look(id);
    };
    await Promise.all(Array.from({ length: LOOKS }, one));
  }

  #send(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Reply | undefined> {
    const { server, endpointId, key } = this.#options;
    return call({
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
