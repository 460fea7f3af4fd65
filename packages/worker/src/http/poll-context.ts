import type { JobConsumer } from '../job-source.ts';
import type { WorkerLog } from '../worker-log.ts';
import type { Timings } from '../timings.ts';
import type { WorkerUrls } from './worker-urls.ts';
import type { HttpClient } from './http-client.ts';
import type { JobPosts } from './job-posts.ts';

/** What the three loops of the public protocol (takes, cancellations, pings) share. */
export interface PollContext {
  urls: WorkerUrls;
  http: HttpClient;
  posts: JobPosts;
  consumer: JobConsumer;
  log: WorkerLog;
  timings: Timings;
  pingMs: number;
}
