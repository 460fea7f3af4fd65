import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { DATABASES, createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { deployHandler, uploadHandler, listWorkers } from '../packages/testing/src/deploy-handler.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const ENV = { BERTH_RATE_LIMITS: 'off' };
const ECHO = 'export default (job: { input: unknown }) => job.input;\n';
const SLOW = `export default async (job: { input: { ms: number } }) => {
  await new Promise((resolve) => setTimeout(resolve, job.input.ms));
  return { by: process.env.MARK ?? 'none', input: job.input };
};
`;
/** One job of this handler waits a little and then ends the process. */
const POISONED = `export default async (job: { input: string }) => {
  if (job.input !== 'poison') return 'done';
  await new Promise((resolve) => setTimeout(resolve, 200));
  process.exit(1);
};
`;

interface JobAnswer {
  id: string;
  status: string;
  output?: unknown;
  error?: string;
  reason?: string;
}

for (const kind of DATABASES) {
  describe(`serverless on ${kind}`, () => {
    let place: TestDatabase;
    let server: ServerProcess;
    let client: ApiClient;

    before(async () => {
      place = await createTestDatabase(kind);
      server = await startServerProcess(place, ENV);
      client = server.client();
    });
    after(async () => {
      await server.stop();
      await place.drop();
    });

    const run = async (endpointId: string, input: unknown): Promise<string> =>
      (await client.call<JobAnswer>('POST', `/v2/${endpointId}/run`, { input })).body.id;
    const status = async (endpointId: string, id: string): Promise<JobAnswer> =>
      (await client.call<JobAnswer>('GET', `/v2/${endpointId}/status/${id}`)).body;
    const ended = (endpointId: string, id: string): Promise<JobAnswer> =>
      waitFor(`job ${id} has ended`, async () => {
        const job = await status(endpointId, id);
        return ['IN_QUEUE', 'IN_PROGRESS'].includes(job.status) ? undefined : job;
      });

    test('a first job starts a worker at once; idleness ends it, and nothing of it stays', async () => {
      const endpoint = await deployHandler(client, 'first', ECHO, {
        scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
        workers: { min: 0, max: 2, idleTimeout: 1 },
      });
      assert.deepEqual(await listWorkers(client, endpoint), []);
      const answer = await client.call<JobAnswer>('POST', `/v2/${endpoint}/runsync`, {
        input: { hello: 'world' },
      });
      assert.deepEqual([answer.body.status, answer.body.output], ['COMPLETED', { hello: 'world' }]);
      const [worker] = await listWorkers(client, endpoint);
      assert.ok(worker !== undefined);
      await waitFor(
        'the idle worker is gone',
        async () => (await listWorkers(client, endpoint)).length === 0,
      );
      await waitFor('its processes are gone', async () => processesOf(endpoint).length === 0);
      const logs = await client.call('GET', `/v2/serverless/${endpoint}/workers/${worker.id}/logs`);
      assert.match(logs.text, /Started\./);
    });

    test('a removed endpoint takes the logs of its workers along, also of those that ended before', async () => {
      const endpoint = await deployHandler(client, 'forgotten', ECHO, {
        scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
        workers: { min: 0, max: 1, idleTimeout: 1 },
      });
      const started: string[] = [];
      for (let n = 0; n < 2; n += 1) {
        if (n > 0)
          await waitFor(
            'the idle worker is gone',
            async () => (await listWorkers(client, endpoint)).length === 0,
          );
        await client.call('POST', `/v2/${endpoint}/runsync`, { input: n });
        started.push(...(await listWorkers(client, endpoint)).map(({ id }) => id));
      }
      const kept = (): string[] => readdirSync(join(place.data, 'logs')).filter((id) => started.includes(id));
      assert.deepEqual([started.length, kept().length], [2, 2]);
      await client.call('DELETE', `/v2/serverless/${endpoint}`);
      assert.deepEqual(kept(), []);
    });

    test('a load goes straight to the target and never above the maximum', async () => {
      const endpoint = await deployHandler(client, 'load', SLOW, { workers: { min: 0, max: 4 } });
      const jobs = await Promise.all(Array.from({ length: 12 }, () => run(endpoint, { ms: 300 })));
      let most = 0;
      const watching = waitFor('four workers', async () => {
        most = Math.max(most, (await listWorkers(client, endpoint)).length);
        return most >= 4;
      });
      for (const id of jobs) assert.equal((await ended(endpoint, id)).status, 'COMPLETED');
      await watching;
      assert.equal(most, 4);
      await client.call('DELETE', `/v2/serverless/${endpoint}`);
      assert.deepEqual(processesOf(endpoint), []);
    });

    test('a handler that crashes at import is the reason of waiting jobs, and others are not affected', async () => {
      const broken = await deployHandler(
        client,
        'broken',
        `throw new Error('the model file is missing');\n`,
        {
          workers: { min: 0, max: 1 },
        },
      );
      const fine = await deployHandler(client, 'fine', ECHO, { workers: { min: 0, max: 1 } });
      const id = await run(broken, 1);
      assert.equal(
        (await client.call<JobAnswer>('POST', `/v2/${fine}/runsync`, { input: 2 })).body.output,
        2,
      );
      const reason = await waitFor('the reason is told', async () => {
        const job = await status(broken, id);
        return job.reason?.includes('the model file is missing') === true ? job.reason : undefined;
      });
      assert.match(reason, /in a row/);
      await client.call('DELETE', `/v2/serverless/${broken}`);
    });

    test('a job that ends its worker fails alone, however many its worker had taken ahead', async () => {
      const endpoint = await deployHandler(client, 'poison', POISONED, {
        maxRetries: 0,
        workers: { min: 0, max: 1 },
      });
      // A worker takes jobs ahead when it has seen that they are short.
      for (let n = 0; n < 100; n += 1)
        await client.call('POST', `/v2/${endpoint}/runsync`, { input: 'harmless' });
      const poison = await run(endpoint, 'poison');
      const others = await Promise.all(Array.from({ length: 300 }, () => run(endpoint, 'harmless')));
      assert.equal((await ended(endpoint, poison)).status, 'FAILED');
      for (const id of others) assert.equal((await ended(endpoint, id)).status, 'COMPLETED');
      await client.call('DELETE', `/v2/serverless/${endpoint}`);
    });

    test('an image that no engine can run is reported as the reason', async () => {
      const endpoint = await deployHandler(client, 'foreign', ECHO, { workers: { min: 0, max: 1 } });
      await client.call('PATCH', `/v2/serverless/${endpoint}`, { image: 'somebody/container:1' });
      const id = await run(endpoint, 1);
      await waitFor(
        'the reason is told',
        async () => (await status(endpoint, id)).reason?.includes('somebody/container:1') === true,
      );
    });

    test('a release lets the busy worker finish, gives the next job to a new one, and rolls back', async () => {
      const endpoint = await deployHandler(client, 'release', SLOW, {
        env: { MARK: 'old' },
        workers: { min: 1, max: 1 },
      });
      const slow = await run(endpoint, { ms: 1500 });
      await waitFor('the job runs', async () => (await status(endpoint, slow)).status === 'IN_PROGRESS');
      const changed = await client.call<{ env: Record<string, string> }>(
        'PATCH',
        `/v2/serverless/${endpoint}`,
        { env: { MARK: 'new' } },
      );
      assert.equal(changed.body.env['MARK'], 'new');
      const next = await run(endpoint, { ms: 1 });
      assert.equal(((await ended(endpoint, slow)).output as { by: string }).by, 'old');
      assert.equal(((await ended(endpoint, next)).output as { by: string }).by, 'new');
      const { body } = await client.call<{
        endpointVersion: number;
        releases: { version: number; diff: { field: string }[] }[];
      }>('GET', `/v2/serverless/${endpoint}/releases`);
      assert.deepEqual(
        body.releases.map(({ version }) => version),
        [1, 0],
      );
      assert.deepEqual(
        body.releases[0]?.diff.map(({ field }) => field),
        ['template.env'],
      );
      const back = await client.call('POST', `/v2/serverless/${endpoint}/releases/0/rollback`);
      assert.deepEqual([back.status, back.body], [200, { endpointVersion: 2 }]);
      const last = await run(endpoint, { ms: 1 });
      assert.equal(((await ended(endpoint, last)).output as { by: string }).by, 'old');
      await client.call('DELETE', `/v2/serverless/${endpoint}`);
    });

    test('requests around the idle timeout are all answered', async () => {
      const endpoint = await deployHandler(client, 'edge', ECHO, {
        scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
        workers: { min: 0, max: 1, idleTimeout: 1 },
      });
      await client.call('POST', `/v2/${endpoint}/runsync`, { input: 0 });
      await new Promise((resolve) => setTimeout(resolve, 900));
      const answers: Promise<{ body: JobAnswer }>[] = [];
      for (let n = 0; n < 60; n += 1) {
        answers.push(client.call<JobAnswer>('POST', `/v2/${endpoint}/runsync`, { input: n }));
        if (n % 10 === 9) await new Promise((resolve) => setTimeout(resolve, 1000));
        else await new Promise((resolve) => setTimeout(resolve, 10));
      }
      const outcomes = await Promise.all(answers);
      assert.deepEqual(
        outcomes.map(({ body }) => body.output),
        Array.from({ length: 60 }, (_, n) => n),
      );
      await client.call('DELETE', `/v2/serverless/${endpoint}`);
    });

    test('after kill -9 the same workers go on, none is started twice, and no job is lost', async () => {
      const endpoint = await deployHandler(client, 'survivor', SLOW, { workers: { min: 3, max: 3 } });
      await waitFor(
        'three workers are ready',
        async () =>
          (await listWorkers(client, endpoint)).filter((worker) => worker.status !== 'INITIALIZING')
            .length === 3,
      );
      const before = (await listWorkers(client, endpoint)).map(({ id }) => id).sort();
      const jobs = await Promise.all(Array.from({ length: 12 }, () => run(endpoint, { ms: 400 })));
      const port = new URL(server.url).port;
      await server.kill();
      server = await startServerProcess(place, ENV, ['--port', port]);
      client = server.client();
      for (const id of jobs) assert.equal((await ended(endpoint, id)).status, 'COMPLETED');
      assert.deepEqual((await listWorkers(client, endpoint)).map(({ id }) => id).sort(), before);
      assert.equal(processesOf(endpoint).length, 3);
      await client.call('DELETE', `/v2/serverless/${endpoint}`);
      await waitFor('nothing runs any more', async () => processesOf(endpoint).length === 0);
    });

    test('a job has its own log', async () => {
      const endpoint = await deployHandler(
        client,
        'talker',
        `export default (job: { id: string; input: string }) => { console.log('I heard ' + job.input); return 1; };\n`,
        { workers: { min: 0, max: 1 } },
      );
      const { body } = await client.call<JobAnswer>('POST', `/v2/${endpoint}/runsync`, { input: 'this' });
      await client.call('POST', `/v2/${endpoint}/runsync`, { input: 'that' });
      await waitFor('the line is there', async () =>
        (await client.call('GET', `/v2/${endpoint}/logs/${body.id}`)).text.includes('I heard this'),
      );
      assert.equal((await client.call('GET', `/v2/${endpoint}/logs/no-such-job`)).status, 404);
    });

    test('a second upload under the same name is a new image', async () => {
      const first = await uploadHandler(client, 'twice', ECHO);
      assert.equal(await uploadHandler(client, 'twice', ECHO), first);
      assert.notEqual(await uploadHandler(client, 'twice', SLOW), first);
    });
  });
}

/** The workers of an endpoint that have processes now, by the environment of those. */
function processesOf(endpointId: string): string[] {
  const workers = readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
      return environment.includes(`RUNPOD_ENDPOINT_ID=${endpointId}\0`)
        ? [/RUNPOD_POD_ID=(\w+)/.exec(environment)?.[1] ?? pid]
        : [];
    } catch {
      // It ended while we looked, or is not ours to look at.
      return [];
    }
  });
  return [...new Set(workers)];
}
