import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { createFakedClock } from '../packages/testing/src/faked-clock.ts';
import type { FakedClock } from '../packages/testing/src/faked-clock.ts';
import { createRunningPod, podAction, waitForPodStatus } from '../packages/testing/src/pod-client.ts';
import { createQueueEndpoint, queueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { parseLogLines } from '../packages/testing/src/server-fixture.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { createTestDatabase, DATABASES } from '../packages/testing/src/test-database.ts';
import type { DatabaseKind, TestDatabase } from '../packages/testing/src/test-database.ts';

const HOUR_S = 3600;
const POLICY = { executionTimeout: 600_000, ttl: 1_800_000 };
const installed = createFakedClock();
installed?.remove();

// Most of the time they wait.
describe('the clock of the machine', { concurrency: true }, () => DATABASES.forEach(clockSuite));

function clockSuite(kind: DatabaseKind): void {
  describe(`the clock of the machine is set while jobs run, on ${kind}`, {
    concurrency: false,
    skip: installed === undefined && 'libfaketime is not installed (Debian: faketime)',
  }, () => {
    let clock: FakedClock;
    let database: TestDatabase;
    let server: ServerProcess;
    before(async () => {
      clock = createFakedClock() as FakedClock;
      database = await createTestDatabase(kind);
      server = await startServerProcess(database, { BERTH_RATE_LIMITS: 'off', ...clock.env });
    });
    after(async () => {
      await server?.stop();
      await database?.drop();
      clock?.remove();
    });
    const logged = (text: RegExp): Promise<boolean> =>
      waitFor(`the log has ${text}`, async () =>
        parseLogLines(server).some(({ msg }) => text.test(String(msg))),
      );

    test('an hour ahead, a restart, and an hour back end and lose no job, and are not billed', async () => {
      let jobs = await createQueueEndpoint(server.url, server.key);
      const pod = await createRunningPod(server.client());
      const running = await Promise.all(Array.from({ length: 10 }, () => jobs.run({}, { policy: POLICY })));
      let worker = jobs.worker();
      let held: string[] = [];
      while (held.length < 10) {
        const { body } = await worker.pollBatch(10 - held.length, { busy: held.length > 0 });
        held = [...held, ...(body ?? []).map(({ id }) => id)];
      }
      assert.deepEqual([...held].sort(), [...running].sort());
      const pinging = setInterval(() => void worker.ping(held).catch(() => undefined), 1_000);
      const queued = await Promise.all(Array.from({ length: 10 }, () => jobs.run({}, { policy: POLICY })));
      const statuses = async (): Promise<string[]> =>
        Promise.all([...held, ...queued].map(async (id) => (await jobs.status(id)).status));
      const unchanged = [...held.map(() => 'IN_PROGRESS'), ...queued.map(() => 'IN_QUEUE')];

      clock.set(HOUR_S);
      await logged(/clock of this machine was set ahead by 3600 s/);
      assert.deepEqual(await statuses(), unchanged);
      const { port } = new URL(server.url);
      await server.kill();
      server = await startServerProcess(database, { BERTH_RATE_LIMITS: 'off', ...clock.env }, [
        '--port',
        port,
      ]);
      jobs = queueEndpointClient(server.client(), jobs.id, server.key);
      worker.close();
      worker = jobs.worker(worker.workerId);
      const soonOver = await jobs.run({}, { policy: { ttl: 10_000 } });
      clock.set(-HOUR_S);
      await logged(/clock of this machine was set back by 7200 s/);
      // Time goes on: what is due ends, and nothing else.
      await waitFor('a job ends at its time to live', async () => {
        const { status, body } = await jobs.call('GET', `status/${soonOver}`);
        return status === 404 || !['IN_QUEUE', 'IN_PROGRESS'].includes(String(body.status));
      });
      assert.deepEqual(await statuses(), unchanged);

      clearInterval(pinging);
      for (const id of held) assert.equal((await worker.done(id, { output: 1 })).status, 200);
      let taken = 0;
      while (taken < 10) {
        for (const { id } of (await worker.pollBatch(10)).body ?? []) {
          await worker.done(id, { output: 2 });
          taken += 1;
        }
      }
      for (const id of [...held, ...queued]) {
        const { status, executionTime, delayTime } = await jobs.waitForEnd(id);
        assert.equal(status, 'COMPLETED');
        assert.ok(Number(executionTime) < 300_000 && Number(delayTime) < 300_000, String(executionTime));
      }
      worker.close();

      await podAction(server.client(), pod.id, 'stop');
      await waitForPodStatus(server.client(), pod.id, 'EXITED');
      const billed = await waitFor('the pod is billed', async () => {
        const { body } = await server
          .client()
          .call<{ timeBilledMs: number }[]>('GET', '/v1/billing/pods?grouping=podId&bucketSize=year');
        return body.length > 0 && body.reduce((sum, { timeBilledMs }) => sum + timeBilledMs, 0);
      });
      assert.ok(billed > 0 && billed < 300_000, `${billed} ms`);
    });

    test('when nothing runs or waits, the time of the machine is used again', {
      skip: kind === 'postgres' && 'the servers go by the clock of the database',
    }, async () => {
      await logged(/the time of the machine is used again/);
      const jobs = await createQueueEndpoint(server.url, server.key);
      const { body } = await server.client().call<{ createdAt: string }>('GET', `/v2/serverless/${jobs.id}`);
      assert.ok(Math.abs(Date.parse(body.createdAt) - (Date.now() - HOUR_S * 1000)) < 60_000, body.createdAt);
    });
  });
}
