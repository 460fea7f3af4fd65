import assert from 'node:assert/strict';
import { afterEach, beforeEach } from 'node:test';
import { UnhealthyError } from '../fitness.ts';
import type { Handler } from '../handler.ts';
import type { Options } from '../options.ts';
import { Shift } from '../shift.ts';
import { QUICK_PACE } from './quick-pace.ts';
import { TestServer } from './test-server.ts';

/** A server and a worker for each test of a suite, on one of the ways by which jobs come. */
export class ShiftBench {
  readonly #channel: 'public' | 'fast';
  #server: TestServer | undefined;
  #shift: Shift | undefined;

  /** Called where the suite is told. */
  constructor(channel: 'public' | 'fast') {
    this.#channel = channel;
    beforeEach(async () => {
      this.#server = await TestServer.start({ channel: channel === 'fast' });
    });
    afterEach(async () => {
      await this.end();
      await this.server.stop();
    });
  }

  get server(): TestServer {
    if (this.#server === undefined) throw new Error('the server is not there yet');
    return this.#server;
  }

  start(handler: Handler, options: Options = {}): Shift {
    this.#shift = new Shift(
      handler,
      { channel: this.#channel, env: this.server.environment(), ...options },
      { pace: QUICK_PACE, pulse: false, write: () => undefined },
    );
    return this.#shift;
  }

  async end(): Promise<void> {
    this.#shift?.abort();
    await this.#shift?.done.catch((error: unknown) => assert.ok(error instanceof UnhealthyError));
    this.#shift = undefined;
  }
}
