import { setTimeout as pause } from 'node:timers/promises';
import { HttpConnection } from '../support/http-connection.ts';
import { AnswerCounts } from './answer-counts.ts';
import type { FloodPlan } from './flood-plan.ts';

const CONNECTIONS = 64;
const LARGE_CONNECTIONS = 4;
const LARGE_BYTES = 5_000_000;
const RETRY_MS = 10;

/** One account that sends as many jobs as it can, and asks again at once if it is refused. */
export class JobFlooder {
  readonly #plan: FloodPlan;
  readonly #answers = new AnswerCounts();

  constructor(plan: FloodPlan) {
    this.#plan = plan;
  }

  start(): void {
    const small = JSON.stringify({ input: { text: 'x'.repeat(1000) } });
    const large = JSON.stringify({ input: 'x'.repeat(LARGE_BYTES) });
    for (let index = 0; index < CONNECTIONS; index += 1) void this.#send('job', small);
    for (let index = 0; index < LARGE_CONNECTIONS; index += 1) void this.#send('large job', large);
  }

  toString(): string {
    return this.#answers.toString();
  }

  async #send(what: string, body: string): Promise<void> {
    const { url, flooder } = this.#plan;
    for (;;) {
      const connection = new HttpConnection(url, `Bearer ${flooder.key}`);
      try {
        for (;;) {
          const { status } = await connection.request('POST', `/v2/${flooder.endpointId}/run`, body);
          this.#answers.add(`${what} ${status}`);
        }
      } catch {
        this.#answers.add(`${what} broken off`);
        connection.close();
        await pause(RETRY_MS);
      }
    }
  }
}
