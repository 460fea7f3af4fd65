import { setTimeout as pause } from 'node:timers/promises';
import { seededRandom } from '../packages/testing/src/safety/seeded-random.ts';
import type { SeededRandom } from '../packages/testing/src/safety/seeded-random.ts';
import { SeveralServers } from '../packages/testing/src/several-servers-fixture.ts';
import type { BenchContext } from './support/bench-context.ts';
import { createEchoEndpoint, measureTakeovers } from './support/takeover.ts';

const CLIENTS = 4;
const WORKERS = 4;
const LOOKUPS_AT_ONCE = 16;
const ENDED = ['COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT'];

/**
 * Three servers on one PostgreSQL: any of them killed at random under load, and how soon the next one leads.
 */
export async function kills(bench: BenchContext): Promise<void> {
  const { report, minutes, rounds } = bench;
  report.part('kills', `three servers, any killed at random for ${minutes} min under load`);
  const postgres = await bench.postgres();
  process.env['BERTH_TEST_DATABASE_URL'] ??= postgres.url;
  const servers = await SeveralServers.start(3);
  try {
    if (rounds > 0) await measureTakeovers(servers, report, rounds);
    await killAtRandom(bench, servers);
  } finally {
    await servers.stop();
  }
}

async function killAtRandom({ report, minutes }: BenchContext, servers: SeveralServers): Promise<void> {
  const random = seededRandom(Number(process.env['SEED'] ?? 1), 'kills');
  const endpointId = await createEchoEndpoint(servers.slots[1]?.server.client(), 'killed', WORKERS);
  const load = new Load(servers, endpointId, random);
  load.start();
  const until = performance.now() + minutes * 60_000;
  let count = 0;
  while (performance.now() < until) {
    await pause(random.between(500, 3_000));
    const slot = random.pick(servers.slots);
    if (slot === undefined) break;
    await slot.server.kill();
    count += 1;
    await pause(random.between(0, 2_000));
    await servers.restart(slot);
  }
  await load.stop();
  report.print(`${count} kills, ${load.acknowledged.size} jobs acknowledged; each is looked up`);
  const { lost, notCompleted } = await load.check();
  const completed = await servers.number(
    `select coalesce(sum(completed), 0) from job_counts where endpoint_id = '${endpointId}'`,
  );
  report.print(
    `${load.retries} requests sent a second time, ${notCompleted} jobs ended otherwise than COMPLETED`,
  );
  const none = (what: string, found: number): void =>
    report.bar({ part: 'kills', what, bar: '0', measured: String(found), met: found === 0 });
  none('acknowledged jobs lost', lost);
  none('jobs with two results', Math.max(0, completed - (load.acknowledged.size - notCompleted - lost)));
  none('jobs that ended otherwise than COMPLETED', notCompleted);
  none('requests that failed after one retry', load.failed);
}

/** Clients that send a request a second time, to another server, where the first one does not answer. */
class Load {
  readonly #servers: SeveralServers;
  readonly #endpointId: string;
  readonly #random: SeededRandom;
  readonly acknowledged = new Map<string, number>();
  retries = 0;
  failed = 0;
  #next = 0;
  #isOver = false;
  #clients: Promise<void>[] = [];

  constructor(servers: SeveralServers, endpointId: string, random: SeededRandom) {
    this.#servers = servers;
    this.#endpointId = endpointId;
    this.#random = random;
  }

  start(): void {
    this.#clients = Array.from({ length: CLIENTS }, () => this.#submit());
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
  }

  async #submit(): Promise<void> {
    while (!this.#isOver) {
      const input = (this.#next += 1);
      const answer = await this.#ask<{ id: string }>(`/run`, { input });
      if (answer !== undefined) this.acknowledged.set(answer.id, input);
      await pause(this.#random.between(5, 60));
    }
  }

  /** Undefined where both attempts failed. */
  async #ask<T>(path: string, body?: unknown): Promise<T | undefined> {
    const slots = [...this.#servers.slots];
    const first = slots.splice(this.#random.between(0, slots.length - 1), 1);
    const key = `${this.#endpointId}-${this.#next}`;
    for (const slot of [...first, this.#random.pick(slots)]) {
      if (slot === undefined) continue;
      try {
        const { url, key: apiKey } = slot.server;
        const answer = await fetch(`${url}/v2/${this.#endpointId}${path}`, {
          method: body === undefined ? 'GET' : 'POST',
          headers: {
            authorization: `Bearer ${apiKey}`,
            'content-type': 'application/json',
            ...(body !== undefined && { 'idempotency-key': key }),
          },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        });
        if (answer.ok) return (await answer.json()) as T;
        await answer.arrayBuffer();
      } catch {
        // The connection was refused or broke.
      }
      this.retries += 1;
    }
    this.failed += 1;
    return undefined;
  }

  /** How many are lost or ended otherwise than they should. */
  async check(): Promise<{ lost: number; notCompleted: number }> {
    let [lost, notCompleted] = [0, 0];
    const jobs = this.acknowledged.entries();
    const line = async (): Promise<void> => {
      for (const [id, input] of jobs) {
        const end = await this.#endOf(id);
        if (end === undefined) lost += 1;
        else if (end.status !== 'COMPLETED' || end.output !== input) notCompleted += 1;
      }
    };
    await Promise.all(Array.from({ length: LOOKUPS_AT_ONCE }, line));
    return { lost, notCompleted };
  }

  async #endOf(id: string): Promise<{ status: string; output?: unknown } | undefined> {
    const until = performance.now() + 90_000;
    while (performance.now() < until) {
      const job = await this.#ask<{ status: string; output?: unknown }>(`/status/${id}`);
      if (job !== undefined && ENDED.includes(job.status)) return job;
      await pause(50);
    }
    return undefined;
  }
}
