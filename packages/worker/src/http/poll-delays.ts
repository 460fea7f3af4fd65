import type { Timings } from '../timings.ts';
import type { HttpResponse } from './http-client.ts';

const MAX_RETRY_AFTER_MS = 60_000;

/** How long to stay away after 429, to whatever was asked or posted: what the server asks for, within reason. */
export function rateLimitDelayMs({ retryAfterMs }: HttpResponse, { rateLimitDelay }: Timings): number {
  return Math.min(MAX_RETRY_AFTER_MS, Math.max(rateLimitDelay, retryAfterMs ?? 0));
}

/** An answer that came at once is followed by a pause, whatever it says: a server that does not hold requests is not asked in a hot loop. */
export function emptyPollDelayMs(askedAt: number, { emptyPollDelay }: Timings): number {
  return Date.now() - askedAt < emptyPollDelay ? emptyPollDelay : 0;
}
