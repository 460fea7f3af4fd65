import { setTimeout as pause } from 'node:timers/promises';
import { AnswerCounts } from './answer-counts.ts';

const RETRY_MS = 10;

/** Sends a request and says what came of it. A refusal is followed by a short pause. */
export type FloodRequest = () => Promise<{ answer: string; refused?: boolean }>;

/** One account that repeats its requests for ever, side by side, and counts the answers. */
export class Flooder {
  readonly #requests: readonly FloodRequest[];
  readonly #answers = new AnswerCounts();

  constructor(requests: readonly FloodRequest[]) {
    this.#requests = requests;
  }

  start(): void {
    for (const request of this.#requests) void this.#repeat(request);
  }

  toString(): string {
    return this.#answers.toString();
  }

  async #repeat(request: FloodRequest): Promise<void> {
    for (;;) {
      const { answer, refused = false } = await request();
      this.#answers.add(answer);
      if (refused) await pause(RETRY_MS);
    }
  }
}
