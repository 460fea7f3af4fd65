import assert from 'node:assert/strict';
import { SkippedError } from './skipped-error.ts';
import type { ConformanceCheck } from './conformance-check.ts';
import type { Deployment } from './deployment.ts';
import { createConformanceWorker } from './conformance-worker.ts';

const group = 'jobs';

interface Job {
  id: string;
  status: string;
  output?: unknown;
  error?: string;
  delayTime?: number;
  executionTime?: number;
  workerId?: string;
}

const COUNTS = {
  jobs: ['completed', 'failed', 'inProgress', 'inQueue', 'retried'],
  workers: ['idle', 'initializing', 'ready', 'running', 'throttled', 'unhealthy'],
};

function status(site: Deployment, endpointId: string, jobId: string): Promise<Job> {
  return site.expectStatus<Job>('jobs', 'GET', `/${endpointId}/status/${jobId}`, 200);
}

export const jobChecks: ConformanceCheck[] = [
  {
    group,
    name: 'run answers exactly 200 with an id and IN_QUEUE; the key may stand bare',
    run: async (site) => {
      const { id } = await site.endpoint();
      const first = await site.expectStatus<Job>('jobs', 'POST', `/${id}/run`, 200, { input: { a: 1 } });
      assert.deepEqual([typeof first.id, first.status], ['string', 'IN_QUEUE']);
      await site.expectStatus(
        'jobs',
        'POST',
        `/${id}/run`,
        200,
        { input: {} },
        { authorization: site.options.key },
      );
      assert.equal((await status(site, id, first.id)).status, 'IN_QUEUE');
    },
  },
  {
    group,
    name: 'a bad key is 401, an unknown endpoint or job 404, a bad body 400',
    run: async (site) => {
      const { id } = await site.endpoint();
      await site.expectStatus(
        'jobs',
        'POST',
        `/${id}/run`,
        401,
        { input: {} },
        { authorization: 'Bearer rpa_wrong' },
      );
      await site.expectStatus('jobs', 'POST', '/nosuchendpoint/run', 404, { input: {} });
      await site.expectStatus('jobs', 'GET', `/${id}/status/nosuchjob`, 404);
      await site.expectStatus('jobs', 'POST', `/${id}/run`, 400, '{"input":');
    },
  },
  {
    group,
    name: 'runsync answers after its wait, with an id that begins with sync-',
    run: async (site) => {
      const { id } = await site.endpoint();
      const job = await site.expectStatus<Job>('jobs', 'POST', `/${id}/runsync?wait=1000`, 200, {
        input: {},
      });
      assert.equal(job.status, 'IN_QUEUE');
      assert.match(job.id, /^sync-/);
    },
  },
  {
    group,
    name: 'cancel ends a job that waits, and stays so',
    run: async (site) => {
      const { id } = await site.endpoint();
      const job = await site.expectStatus<Job>('jobs', 'POST', `/${id}/run`, 200, { input: {} });
      const cancelled = await site.expectStatus<Job>('jobs', 'POST', `/${id}/cancel/${job.id}`, 200, {});
      assert.deepEqual([cancelled.id, cancelled.status], [job.id, 'CANCELLED']);
      assert.equal((await status(site, id, job.id)).status, 'CANCELLED');
    },
  },
  {
    group,
    name: 'purge-queue removes what waits and says how much',
    run: async (site) => {
      const { id } = await site.endpoint();
      for (let n = 0; n < 3; n += 1) await site.expectStatus('jobs', 'POST', `/${id}/run`, 200, { input: n });
      assert.deepEqual(await site.expectStatus('jobs', 'POST', `/${id}/purge-queue`, 200, {}), {
        removed: 3,
        status: 'completed',
      });
    },
  },
  {
    group,
    name: 'health has every count as a whole number',
    run: async (site) => {
      const { id } = await site.endpoint();
      await site.expectStatus('jobs', 'POST', `/${id}/run`, 200, { input: {} });
      const health = await site.expectStatus<Record<keyof typeof COUNTS, Record<string, number>>>(
        'jobs',
        'GET',
        `/${id}/health`,
        200,
      );
      for (const [part, names] of Object.entries(COUNTS))
        for (const name of names)
          assert.ok(Number.isInteger(health[part as keyof typeof COUNTS][name]), `${part}.${name}`);
      assert.equal(health.jobs['inQueue'], 1);
    },
  },
  {
    group,
    name: 'an endpoint with workers finishes a job',
    run: async (site) => {
      const { endpointId } = site.options;
      if (endpointId === undefined) throw new SkippedError('no --endpoint was given');
      const job = await site.expectStatus<Job>('jobs', 'POST', `/${endpointId}/run`, 200, {
        input: { prompt: 'conformance' },
      });
      const ended = await site.waitFor('the job ends', async () => {
        const now = await status(site, endpointId, job.id);
        return !['IN_QUEUE', 'IN_PROGRESS'].includes(now.status) && now;
      });
      assert.ok(
        Number.isInteger(ended.delayTime) &&
          Number.isInteger(ended.executionTime) &&
          typeof ended.workerId === 'string',
        JSON.stringify(ended),
      );
    },
  },
  {
    group,
    name: 'a worker takes a job and its result is shown, with how long it took',
    run: async (site) => {
      const worker = await createConformanceWorker(site);
      const { id } = worker.endpoint;
      const waiting = site.expectStatus<Job>('jobs', 'POST', `/${id}/runsync?wait=30000`, 200, {
        input: { say: 'hello' },
      });
      const taken = await worker.take();
      assert.deepEqual(taken.input, { say: 'hello' });
      await worker.ping(taken.id);
      assert.equal((await status(site, id, taken.id)).status, 'IN_PROGRESS');
      await worker.done(taken.id, { output: { said: 'hello' } });
      const job = await waiting;
      assert.deepEqual([job.id, job.status, job.output], [taken.id, 'COMPLETED', { said: 'hello' }]);
      assert.ok(Number.isInteger(job.delayTime) && Number.isInteger(job.executionTime));
    },
  },
  {
    group,
    name: 'chunks come in order, and SDKs get them with the status',
    run: async (site) => {
      const worker = await createConformanceWorker(site);
      const { id } = worker.endpoint;
      const job = await site.expectStatus<Job>('jobs', 'POST', `/${id}/run`, 200, { input: {} });
      await worker.take();
      for (const n of [1, 2, 3]) await worker.chunk(job.id, n);
      await worker.done(job.id, { output: [] });
      const seen: unknown[] = [];
      await site.waitFor('the stream ends', async () => {
        const { status: now, stream } = await site.expectStatus<{
          status: string;
          stream: { output: unknown }[];
        }>('jobs', 'GET', `/${id}/stream/${job.id}`, 200, undefined, { 'content-type': 'application/json' });
        seen.push(...stream.map(({ output }) => output));
        return now === 'COMPLETED';
      });
      assert.deepEqual(seen, [1, 2, 3]);
    },
  },
  {
    group,
    name: 'a job that failed can be tried again, one that is done cannot',
    run: async (site) => {
      const worker = await createConformanceWorker(site);
      const { id } = worker.endpoint;
      const job = await site.expectStatus<Job>('jobs', 'POST', `/${id}/run`, 200, { input: {} });
      await worker.take();
      await worker.done(job.id, { error: 'broken' });
      const failed = await site.waitFor('it has failed', async () => {
        const now = await status(site, id, job.id);
        return now.status === 'FAILED' && now;
      });
      assert.match(String(failed.error), /broken/);
      assert.equal(
        (await site.expectStatus<Job>('jobs', 'POST', `/${id}/retry/${job.id}`, 200)).status,
        'IN_QUEUE',
      );
      await worker.take();
      await worker.done(job.id, { output: 1 });
      await site.waitFor('it is done', async () => (await status(site, id, job.id)).status === 'COMPLETED');
      await site.expectStatus('jobs', 'POST', `/${id}/retry/${job.id}`, 400);
    },
  },
  {
    group,
    name: 'a result that comes twice, or after a cancel, changes nothing',
    run: async (site) => {
      const worker = await createConformanceWorker(site);
      const { id } = worker.endpoint;
      const job = await site.expectStatus<Job>('jobs', 'POST', `/${id}/run`, 200, { input: {} });
      await worker.take();
      await site.expectStatus('jobs', 'POST', `/${id}/cancel/${job.id}`, 200);
      await worker.done(job.id, { output: 'late' });
      assert.deepEqual(((now) => [now.status, now.output])(await status(site, id, job.id)), [
        'CANCELLED',
        undefined,
      ]);
    },
  },
];
