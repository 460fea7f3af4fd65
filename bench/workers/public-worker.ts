import { HttpPool } from '../support/http-connection.ts';
import { JOB_BODY } from '../support/job-body.ts';
import type { BenchWorker, WorkerOptions } from './worker-messages.ts';

const RESULT = '{"output":{"ok":true}}';
/** Fewer free slots than this are not worth a request. */
const SMALLEST_BATCH = 10;
/**
 * For results. The public SDK opens one for each result that is on its way, without a limit; here all processes
 * together open at most so many, which they do at once, and more would overrun the server's listening socket.
 */
const MAX_CONNECTIONS = 512;

/**
 * A worker that speaks the public protocol and does nothing else: takes in batches, one result to a request.
 */
export async function publicWorker({
  target,
  key = '',
  queue,
  workerId,
  concurrency,
  processes,
  refill = false,
}: WorkerOptions): Promise<BenchWorker> {
  const base = `/v2/${queue}`;
  const posts = new HttpPool(target, key, Math.min(concurrency, Math.floor(MAX_CONNECTIONS / processes)));
  const takes = new HttpPool(target, key, 1);
  await Promise.all([posts.opened(), takes.opened()]);
  let running = 0;
  let done = 0;
  let stopping = false;
  let roomMade: () => void = () => undefined;

  async function take(): Promise<void> {
    while (!stopping) {
      const room = concurrency - running;
      if (room < Math.min(SMALLEST_BATCH, concurrency)) {
        await new Promise<void>((resolve) => (roomMade = resolve));
        continue;
      }
      const { status, body } = await takes.request(
        'GET',
        `${base}/job-take-batch/${workerId}?gpu=none&batch_size=${room}&job_in_progress=${running > 0 ? 1 : 0}`,
      );
      if (status === 204) continue;
      if (status !== 200) throw new Error(`job-take-batch answered ${status} ${body}`);
      for (const { id } of JSON.parse(body) as { id: string }[]) finish(id).catch(ignoreWhen(() => stopping));
    }
  }

  async function finish(jobId: string): Promise<void> {
    running += 1;
    if (refill) await posts.request('POST', `${base}/run`, JOB_BODY);
    const { status, body } = await posts.request(
      'POST',
      `${base}/job-done/${workerId}/${jobId}?gpu=none&isStream=false`,
      RESULT,
    );
    if (status !== 200) throw new Error(`job-done answered ${status} ${body}`);
    running -= 1;
    done += 1;
    roomMade();
  }

  return {
    get done() {
      return done;
    },
    start: () => void take().catch(ignoreWhen(() => stopping)),
    stop: async () => {
      stopping = true;
      roomMade();
      takes.close();
      posts.close();
    },
  };
}

/** Requests under way fail when their connection is closed on purpose; at any other time that is a fault. */
function ignoreWhen(stopping: () => boolean): (error: unknown) => void {
  return (error) => {
    if (!stopping()) throw error;
  };
}
