import assert from 'node:assert/strict';
import { afterEach, beforeEach } from 'node:test';
import { UnhealthyError } from '../../../worker/src/fitness-checks.ts';
import type { Handler } from '../../../worker/src/handler.ts';
import type { Options } from '../../../worker/src/worker-options.ts';
import { WorkerRuntime } from '../../../worker/src/worker-runtime.ts';
import { SHORT_TIMINGS } from './short-timings.ts';
import { FakePlatform } from './fake-platform.ts';

/** A server and a worker for each test of a suite, on one of the ways by which jobs come. */
export class WorkerFixture {
  readonly #channel: 'public' | 'fast';
  #platform: FakePlatform | undefined;
  #shift: WorkerRuntime | undefined;

  /** Called where the suite is declared. */
  constructor(channel: 'public' | 'fast') {
    this.#channel = channel;
    beforeEach(async () => {
      this.#platform = await FakePlatform.start({ channel: channel === 'fast' });
    });
    afterEach(async () => {
      await this.stop();
      await this.server.stop();
    });
  }

  get server(): FakePlatform {
    if (this.#platform === undefined) throw new Error('the server is not there yet');
    return this.#platform;
  }

  start(handler: Handler, options: Options = {}): WorkerRuntime {
    this.#shift = new WorkerRuntime(
      handler,
      { channel: this.#channel, env: this.server.environment(), ...options },
      { timings: SHORT_TIMINGS, pingThread: false, writeLogLine: () => undefined },
    );
    return this.#shift;
  }

  async stop(): Promise<void> {
    this.#shift?.abort();
    await this.#shift?.done.catch((error: unknown) => assert.ok(error instanceof UnhealthyError));
    this.#shift = undefined;
  }
}
