import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client } from 'pg';
import { deployHandler, listWorkers } from '../../packages/testing/src/deploy-handler.ts';
import { processesOfInstance } from '../../packages/testing/src/pod-client.ts';
import {
  createQueueEndpoint,
  queueEndpointClient,
} from '../../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../../packages/testing/src/server-fixture.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

const PATIENCE_MS = 60_000;
/**
 * To end a worker takes a few commits. Each look here waits for one of its own, so that a slow disk slows
 * both; on a fast one these looks take less than a second.
 */
const LOOKS_APART = 10;

const HANDLER = `
export default ({ input }: { input: { wait?: boolean } }) =>
  input.wait ? new Promise((resolve) => setTimeout(resolve, 1e9)) : input;
`;

describe('a worker whose process was killed', { concurrency: true }, () => {
  const fixture = serverFixture('postgres', { BERTH_RATE_LIMITS: 'off' });
  let database: Client;
  let other: QueueEndpointClient;
  before(async () => {
    other = await createQueueEndpoint(fixture.server.url, fixture.server.key);
    database = new Client({ connectionString: fixture.database.url });
    // It ends with the database, which is dropped first.
    database.on('error', () => undefined);
    await database.connect();
  });
  after(() => database?.end());

  /** Whether the last heartbeat of a worker is in the database, where it stays for a while after its end. */
  const isStored = async (workerId: string): Promise<boolean> =>
    (await database.query('select 1 from job_workers where worker_id = $1', [workerId])).rows.length > 0;
  /** Where the endpoint still has a worker: in the list, and by the counts. */
  const look = async (jobs: QueueEndpointClient): Promise<{ listed: boolean; counted: boolean }> => {
    const listed = (await listWorkers(fixture.operator, jobs.id)).length > 0;
    const counted = (await jobs.health()).workers.ready > 0;
    await other.run();
    return { listed, counted };
  };

  for (const work of ['has nothing to do', 'runs a job'])
    test(`leaves the list and /health together: it ${work}`, async () => {
      const id = await deployHandler(fixture.operator, 'echo', HANDLER, {
        scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
        workers: { min: 0, max: 1, idleTimeout: 300 },
        // Nothing is left to do, so that no other worker comes in its place.
        maxRetries: 0,
      });
      const jobs = queueEndpointClient(fixture.operator, id, fixture.server.key);
      const { workerId = '' } = await jobs.waitForEnd(await jobs.run({}));
      const running = work === 'runs a job' ? await jobs.run({ wait: true }) : undefined;
      if (running !== undefined)
        await waitFor(
          'it runs',
          async () => (await jobs.status(running)).status === 'IN_PROGRESS',
          PATIENCE_MS,
        );
      await waitFor('its heartbeat is stored', () => isStored(workerId), PATIENCE_MS);
      assert.deepEqual(await look(jobs), { listed: true, counted: true });

      const [main] = processesOfInstance(workerId);
      assert.ok(main !== undefined);
      process.kill(main, 'SIGKILL');
      let seen = await waitFor(
        'its end is noticed',
        async () => {
          const now = await look(jobs);
          return now.listed && now.counted ? undefined : now;
        },
        PATIENCE_MS,
      );
      for (let looks = 0; seen.listed || seen.counted; looks += 1) {
        assert.ok(looks < LOOKS_APART, `after ${looks} looks: ${JSON.stringify(seen)}`);
        seen = await look(jobs);
      }
      if (running !== undefined) assert.equal((await jobs.waitForEnd(running)).status, 'FAILED');
      await fixture.operator.call('DELETE', `/v2/serverless/${id}`);
    });
});
