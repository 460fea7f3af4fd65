import { SkippedError } from './skipped-error.ts';
import type { Deployment, Resource } from './deployment.ts';

export interface TakenJob {
  id: string;
  input: unknown;
}

/** The worker side of an endpoint: takes jobs and answers them, by the public protocol. */
export interface ConformanceWorker {
  endpoint: Resource;
  /** The next job, waiting for one. */
  take(): Promise<TakenJob>;
  done(jobId: string, body: Record<string, unknown>): Promise<void>;
  chunk(jobId: string, output: unknown): Promise<void>;
  ping(jobId: string): Promise<void>;
}

const WORKER_ID = 'conformanceworker';

/** An endpoint of its own that this process works for. */
export async function createConformanceWorker(site: Deployment): Promise<ConformanceWorker> {
  const { workerToken } = site.options;
  if (workerToken === undefined)
    throw new SkippedError('no --worker-token was given, so the suite cannot be the worker');
  const endpoint = await site.endpoint();
  const base = `/${endpoint.id}`;
  const headers = { authorization: workerToken };
  const post = async (path: string, jobId: string, body: unknown): Promise<void> => {
    const { status, text } = await site.call(
      'jobs',
      'POST',
      `${base}/${path}/${WORKER_ID}/${jobId}?gpu=none&isStream=false`,
      JSON.stringify(body),
      { ...headers, 'content-type': 'application/x-www-form-urlencoded', 'x-request-id': jobId },
    );
    if (status !== 200) throw new Error(`${path} answered ${status} ${text.slice(0, 100)}`);
  };
  return {
    endpoint,
    take: () =>
      site.waitFor('a job is there to take', async () => {
        const { status, body, text } = await site.call<TakenJob>(
          'jobs',
          'GET',
          `${base}/job-take/${WORKER_ID}?gpu=none&job_in_progress=0`,
          undefined,
          headers,
        );
        if (status === 200) return body;
        if (status !== 204) throw new Error(`job-take answered ${status} ${text.slice(0, 100)}`);
        return undefined;
      }),
    done: (jobId, body) => post('job-done', jobId, body),
    chunk: (jobId, output) => post('job-stream', jobId, { output }),
    ping: async (jobId) => {
      const { status } = await site.call(
        'jobs',
        'GET',
        `${base}/ping/${WORKER_ID}?gpu=none&job_id=${jobId}&runpod_version=1.12.0`,
        undefined,
        headers,
      );
      if (status !== 200) throw new Error(`ping answered ${status}`);
    },
  };
}
