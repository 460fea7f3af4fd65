import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BreakingProxy } from '../../packages/testing/src/breaking-proxy.ts';
import { acceleratedClock } from '../../packages/testing/src/safety/accelerated-clock.ts';
import { callHttp } from '../../packages/testing/src/safety/http-call.ts';
import { startInProcessServer } from '../../packages/testing/src/safety/in-process-server.ts';
import type { InProcessServer } from '../../packages/testing/src/safety/in-process-server.ts';
import { ROOT_KEY } from '../../packages/testing/src/server-process.ts';
import { createTestDatabase } from '../../packages/testing/src/test-database.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import type { ConformanceInput, WorkerSettings } from './conformance-input.ts';
import { WorkerProcess } from './worker-process.ts';
import type { WorkerSdk } from './worker-process.ts';

/** A worker is lost after three seconds of silence. */
export const CLOCK_RATE = 10;
/** A machine that is busy may be slow. */
const WITHIN_MS = 60_000;
const FINAL = ['COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT'];

export interface JobState {
  id: string;
  status: string;
  output?: unknown;
  error?: string;
}

/** A real server with one endpoint, and the workers that a test starts on it. */
export class ConformanceFixture {
  readonly folder = mkdtempSync(join(tmpdir(), 'berth-conformance-'));
  readonly #sdk: WorkerSdk;
  readonly #channel: 'fast' | 'public';
  readonly #site: InProcessServer;
  readonly #closing: (() => Promise<unknown>)[] = [];
  #count = 0;

  private constructor(sdk: WorkerSdk, channel: 'fast' | 'public', site: InProcessServer) {
    this.#sdk = sdk;
    this.#channel = channel;
    this.#site = site;
  }

  static async open(sdk: WorkerSdk, channel: 'fast' | 'public'): Promise<ConformanceFixture> {
    const database = await createTestDatabase('sqlite');
    const site = await startInProcessServer({
      database,
      clock: acceleratedClock(CLOCK_RATE),
      endpoint: { maxRetries: 1 },
    });
    const fixture = new ConformanceFixture(sdk, channel, site);
    fixture.#closing.push(
      async () => rmSync(fixture.folder, { recursive: true, force: true }),
      () => database.drop(),
      () => site.close(),
    );
    return fixture;
  }

  async close(): Promise<void> {
    for (const close of this.#closing.reverse()) await close();
  }

  /** A worker that is there for this piece of work only, behind a proxy. */
  async withWorker<T>(
    work: (worker: WorkerProcess, proxy: BreakingProxy) => Promise<T>,
    settings: Partial<WorkerSettings> & { hideChannel?: boolean } = {},
  ): Promise<T> {
    const { hideChannel = false, ...rest } = settings;
    const proxy = new BreakingProxy(this.#site.url);
    proxy.hideChannel = hideChannel;
    const worker = this.#start(await proxy.listen(), rest);
    try {
      return await work(worker, proxy);
    } catch (error) {
      throw new Error(`${String(error)}\nthe worker printed: ${worker.output.slice(-3000)}`, {
        cause: error,
      });
    } finally {
      await worker.kill();
      await proxy.close();
    }
  }

  #start(url: string, settings: Partial<WorkerSettings>): WorkerProcess {
    this.#count += 1;
    return new WorkerProcess(
      this.#sdk,
      { url, endpointId: this.#site.endpoint.id, workerId: `worker-${this.#count}`, key: ROOT_KEY },
      { handler: 'plain', channel: this.#channel, ...settings },
      mkdtempSync(join(this.folder, 'worker-')),
    );
  }

  /** A path that nothing uses yet. */
  path(name: string): string {
    this.#count += 1;
    return join(this.folder, `${name}-${this.#count}`);
  }

  async run(input: ConformanceInput): Promise<string> {
    return (await this.#call<JobState>('POST', 'run', { input })).id;
  }

  status(id: string): Promise<JobState> {
    return this.#call('GET', `status/${id}`);
  }

  async cancel(id: string): Promise<void> {
    await this.#call('POST', `cancel/${id}`);
  }

  end(id: string): Promise<JobState> {
    return waitFor(
      `the end of ${id}`,
      async () => {
        const job = await this.status(id);
        return FINAL.includes(job.status) && job;
      },
      WITHIN_MS,
    );
  }

  async result(input: ConformanceInput): Promise<JobState> {
    return this.end(await this.run(input));
  }

  /** Every chunk, after the end of the job. */
  async chunks(id: string): Promise<unknown[]> {
    await this.end(id);
    const chunks: unknown[] = [];
    for (;;) {
      const page = await this.#call<{ output: unknown }[]>('GET', `stream/${id}`);
      if (page.length === 0) return chunks;
      chunks.push(...page.map(({ output }) => output));
    }
  }

  printed(worker: WorkerProcess, text: string): Promise<unknown> {
    return waitFor(
      `${JSON.stringify(text)} in the output of the worker`,
      () => worker.output.includes(text),
      WITHIN_MS,
    );
  }

  /** How often a handler was called with the job. */
  runsOf(file: string, id: string): number {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line === id).length;
  }

  touch(path: string): void {
    writeFileSync(path, '');
  }

  async #call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const reply = await callHttp({
      method,
      url: `${this.#site.url}/v2/${this.#site.endpoint.id}/${path}`,
      authorization: `Bearer ${ROOT_KEY}`,
      body,
    });
    assert.equal(reply?.status, 200, reply?.text);
    return reply.body as T;
  }
}
