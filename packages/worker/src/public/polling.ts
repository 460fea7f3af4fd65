import type { Consumer } from '../job-source.ts';
import type { Log } from '../log.ts';
import type { Pace } from '../pace.ts';
import type { Addresses } from './addresses.ts';
import type { Answer, HttpClient } from './http-client.ts';
import type { Posts } from './posts.ts';

/** What the three questions of the public protocol (jobs, stops, pings) need. */
export interface Polling {
  addresses: Addresses;
  http: HttpClient;
  posts: Posts;
  consumer: Consumer;
  log: Log;
  pace: Pace;
  pingMs: number;
}

const LONGEST_RETRY_AFTER = 60_000;

/** How long to stay away after 429, to whatever was asked or posted: what the server asks for, within reason. */
export function pauseAfterTooMany({ retryAfterMs }: Answer, { tooMany }: Pace): number {
  return Math.min(LONGEST_RETRY_AFTER, Math.max(tooMany, retryAfterMs ?? 0));
}

/** An answer that came at once is followed by a pause, whatever it says: a server that does not hold requests is not asked in a hot loop. */
export function pauseAfterEmpty(askedAt: number, { emptyAnswer }: Pace): number {
  return Date.now() - askedAt < emptyAnswer ? emptyAnswer : 0;
}
