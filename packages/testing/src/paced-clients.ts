import { setTimeout as pause } from 'node:timers/promises';
import { monotonicMs } from './safety/job-history.ts';
import { waitFor } from './wait-for.ts';

const ENDED = ['COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT'];
const CHECKS_AT_ONCE = 8;

export interface PacedClientsOptions {
  /** The servers that are asked in turn. */
  urls: () => readonly string[];
  key: string;
  endpointId: string;
  clients: number;
  /** Each client submits a job this often, unless its last one takes longer. */
  intervalMs: number;
}

export interface SubmitAnswer {
  /** On the monotonic clock. */
  at: number;
  /** 0 where the connection was refused or broke. */
  status: number;
}

/** Clients that submit jobs at a steady rate, whatever happens to the servers, and look for all of them later. */
export class PacedClients {
  readonly #options: PacedClientsOptions;
  readonly answers: SubmitAnswer[] = [];
  /** The inputs of the jobs that a server has accepted, by id. */
  readonly acknowledged = new Map<string, number>();
  /** Requests on their way, by server. */
  readonly #underWay = new Map<string, number>();
  #next = 0;
  #isOver = false;
  #running: Promise<void>[] = [];

  constructor(options: PacedClientsOptions) {
    this.#options = options;
  }

  start(): void {
    const { clients } = this.#options;
    this.#running = Array.from({ length: clients }, (_, index) => this.#submit(index / clients));
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
  }

  /** Accepted jobs per second from one moment to another. */
  rate(from: number, to: number): number {
    const accepted = this.answers.filter(({ at, status }) => status === 200 && at >= from && at < to);
    return (accepted.length * 1000) / (to - from);
  }

  /** Waits until no request is on its way to a server that gets no new ones. */
  async whenAnswered(url: string): Promise<void> {
    await waitFor(`${url} has answered`, async () => (this.#underWay.get(url) ?? 0) === 0);
  }

  async #submit(phase: number): Promise<void> {
    const { endpointId, intervalMs } = this.#options;
    await pause(phase * intervalMs);
    for (let due = monotonicMs(); !this.#isOver; due = Math.max(due + intervalMs, monotonicMs())) {
      await pause(Math.max(0, due - monotonicMs()));
      const input = (this.#next += 1);
      const answer = await this.#ask<{ id: string }>(`/v2/${endpointId}/run`, { input });
      this.answers.push({ at: monotonicMs(), status: answer.status });
      if (answer.status === 200 && answer.body !== undefined) this.acknowledged.set(answer.body.id, input);
    }
  }

  async #ask<T>(path: string, body?: unknown): Promise<{ status: number; body?: T }> {
    const { key, urls } = this.#options;
    const servers = urls();
    const url = servers[this.#next % servers.length] ?? '';
    const count = (by: number): unknown => this.#underWay.set(url, (this.#underWay.get(url) ?? 0) + by);
    count(1);
    try {
      const response = await fetch(`${url}${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      return response.ok
        ? { status: response.status, body: JSON.parse(text) as T }
        : { status: response.status };
    } catch {
      return { status: 0 };
    } finally {
      count(-1);
    }
  }

  /** Waits until the accepted jobs have ended. Those that did so otherwise than they should, in words. */
  async wrongEnds(withinMs = 90_000): Promise<string[]> {
    const wrong: string[] = [];
    const rest = [...this.acknowledged];
    const check = async (): Promise<void> => {
      for (let job = rest.pop(); job !== undefined; job = rest.pop()) {
        const [id, input] = job;
        const end = await this.#endOf(id, withinMs).catch(() => undefined);
        if (end?.status !== 'COMPLETED' || end.output !== input)
          wrong.push(`${id}: ${end === undefined ? 'lost' : JSON.stringify(end)}`);
      }
    };
    await Promise.all(Array.from({ length: CHECKS_AT_ONCE }, check));
    return wrong;
  }

  #endOf(id: string, withinMs: number): Promise<{ status: string; output?: unknown }> {
    const path = `/v2/${this.#options.endpointId}/status/${id}`;
    return waitFor(
      `job ${id} has ended`,
      async () => {
        this.#next += 1;
        const { body } = await this.#ask<{ status: string; output?: unknown }>(path);
        return body !== undefined && ENDED.includes(body.status) ? body : undefined;
      },
      withinMs,
    );
  }
}
