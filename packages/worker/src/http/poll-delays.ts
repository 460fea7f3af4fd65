import type { Timings } from '../timings.ts';
import type { HttpResponse } from './http-client.ts';

const MAX_RETRY_AFTER_MS = 60_000;

/** How long to pause after 429, for polls and posts alike: what the server asks for, within limits. */
export function rateLimitDelayMs({ retryAfterMs }: HttpResponse, { rateLimitDelay }: Timings): number {
  return Math.min(MAX_RETRY_AFTER_MS, Math.max(rateLimitDelay, retryAfterMs ?? 0));
}

/**
 * An immediate answer is followed by a pause, whatever it says, so that a server that does not hold requests
 * is not polled in a hot loop.
 */
export function emptyPollDelayMs(askedAt: number, { emptyPollDelay }: Timings): number {
  return Date.now() - askedAt < emptyPollDelay ? emptyPollDelay : 0;
}
