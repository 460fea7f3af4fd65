import { serve } from '../../packages/worker/src/worker.ts';
import { HttpPool } from '../support/http-connection.ts';
import { JOB_BODY } from '../support/job-body.ts';
import type { BenchWorker, WorkerOptions } from './worker-messages.ts';

/** For the jobs that replace those that end. */
const CONNECTIONS = 32;

/** The worker SDK on the fast channel, with a handler that does nothing. */
export async function channelWorker({
  target,
  key = '',
  queue,
  workerId,
  concurrency,
  refill = false,
}: WorkerOptions): Promise<BenchWorker> {
  const base = `${target}/v2/${queue}`;
  const posts = refill ? new HttpPool(target, key, CONNECTIONS) : undefined;
  await posts?.opened();
  let done = 0;
  const handler = async (): Promise<{ ok: boolean }> => {
    if (posts !== undefined) await posts.request('POST', `/v2/${queue}/run`, JOB_BODY);
    done += 1;
    return { ok: true };
  };
  const env = {
    RUNPOD_AI_API_KEY: key,
    RUNPOD_POD_ID: workerId,
    RUNPOD_WEBHOOK_GET_JOB: `${base}/job-take/$ID?gpu=none`,
    RUNPOD_WEBHOOK_POST_OUTPUT: `${base}/job-done/$RUNPOD_POD_ID/$ID?gpu=none`,
    RUNPOD_WEBHOOK_POST_STREAM: `${base}/job-stream/$RUNPOD_POD_ID/$ID?gpu=none`,
    RUNPOD_WEBHOOK_PING: `${base}/ping/$RUNPOD_POD_ID?gpu=none`,
    RUNPOD_LOG_LEVEL: 'ERROR',
  };
  const started = Promise.withResolvers<void>();
  const ready = Promise.withResolvers<void>();
  // All that a worker does before its first job is done then; the last of its checks passes when it is told
  // to start.
  const startRequested = (): Promise<void> => {
    ready.resolve();
    return started.promise;
  };
  const worker = serve(handler, {
    concurrency,
    channel: 'fast',
    signals: false,
    env,
    fitness: [startRequested],
  });
  worker.done.catch((error: unknown) => {
    throw error;
  });
  await ready.promise;
  return {
    get done() {
      return done;
    },
    start: () => started.resolve(),
    stop: async () => {
      await worker.stop();
      posts?.close();
    },
  };
}
