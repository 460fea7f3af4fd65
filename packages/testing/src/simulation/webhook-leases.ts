import type { JobStore } from '../../../cloud/src/store/job-store.ts';
import type { Clock } from '../../../cloud/src/support/clock.ts';
import { InvariantViolation } from './job-model.ts';

/** How far the clocks of two servers may be apart. */
const SKEW_MS = 3_000;

export interface WebhookLeasesDeps {
  now(): number;
  onViolation(violation: InvariantViolation): void;
}

/** A webhook that one server is sending is not taken by another one, whose receiver would get it twice. */
export class WebhookLeases {
  readonly #deps: WebhookLeasesDeps;
  /** By delivery: who sends it, and until when nobody else may, in true time. */
  readonly #held = new Map<string, { server: string; until: number }>();

  constructor(deps: WebhookLeasesDeps) {
    this.#deps = deps;
  }

  /** The same store, as one server uses it. */
  observe(jobs: JobStore, server: string, clock: Clock): JobStore {
    const { now, onViolation } = this.#deps;
    return {
      ...jobs,
      updateDelivery: async (seen, next) => {
        const hasWritten = await jobs.updateDelivery(seen, next);
        if (!hasWritten) return false;
        const held = this.#held.get(next.id);
        const isLease = next.state === 'pending' && next.attempts === seen.attempts;
        if (isLease && held !== undefined && held.server !== server && held.until - SKEW_MS > now())
          onViolation(
            new InvariantViolation(
              next.jobId,
              `${server} took the webhook ${next.id}, which ${held.server} sends`,
            ),
          );
        if (isLease) this.#held.set(next.id, { server, until: now() + (next.nextAt ?? 0) - clock.now() });
        else this.#held.delete(next.id);
        return true;
      },
    };
  }
}
