import type { Rounds } from '../support/rounds.ts';
import type { Roster } from './roster.ts';

const FIRST_PAUSE_MS = 10;

/**
 * With no worker yet, or none that stays, a job that waits is reason to look at its endpoint at
 * once; otherwise the next tick is soon enough. Jobs that come right after it are looked at
 * together, and while they keep coming and no worker does, the looks become rarer.
 */
export class EarlyLooks {
  readonly #roster: Roster;
  readonly #rounds: Rounds;
  readonly #longestPauseMs: number;
  /** Endpoints that were just looked at, and whether another job came since. */
  readonly #pauses = new Map<string, { again: boolean }>();

  constructor(roster: Roster, rounds: Rounds, longestPauseMs: number) {
    this.#roster = roster;
    this.#rounds = rounds;
    this.#longestPauseMs = longestPauseMs;
  }

  jobWaits(endpointId: string): void {
    if (this.#isManned(endpointId)) return;
    const pause = this.#pauses.get(endpointId);
    if (pause === undefined) this.#look(endpointId, FIRST_PAUSE_MS);
    else pause.again = true;
  }

  #look(endpointId: string, pauseMs: number): void {
    this.#rounds.ask(endpointId);
    const pause = { again: false };
    this.#pauses.set(endpointId, pause);
    setTimeout(() => {
      this.#pauses.delete(endpointId);
      if (pause.again && !this.#isManned(endpointId))
        this.#look(endpointId, Math.min(2 * pauseMs, this.#longestPauseMs));
    }, pauseMs).unref();
  }

  #isManned(endpointId: string): boolean {
    return this.#roster.find(endpointId)?.isManned === true;
  }
}
