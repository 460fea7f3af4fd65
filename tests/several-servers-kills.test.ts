import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { listWorkers } from '../packages/testing/src/deploy-handler.ts';
import { processesOfInstance } from '../packages/testing/src/pod-client.ts';
import { seed } from '../packages/testing/src/property-testing.ts';
import { seededRandom } from '../packages/testing/src/safety/seeded-random.ts';
import { SeveralServers } from '../packages/testing/src/several-servers-fixture.ts';
import { repeats } from '../packages/testing/src/test-tier.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

/** Longer where minutes are given. */
const MINUTES = Number(process.env['BERTH_TEST_MINUTES'] ?? 0);
const KILLS = MINUTES > 0 ? Math.ceil(MINUTES * 12) : repeats({ usually: 2, long: 4 });
const WORKERS = 4;
const CLIENTS = 4;

let servers: SeveralServers;
before(async () => {
  servers = await SeveralServers.start(3);
});
after(() => servers?.stop());

test(`three servers and ${KILLS} kills under load: every job completes once, the wanted workers run`, async () => {
  const random = seededRandom(seed, 'kills');
  const made = await servers.slots[1]?.server.client().call<{ id: string }>('POST', '/v2/serverless', {
    name: 'killed',
    type: 'QUEUE',
    image: 'local/echo',
    cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    scaling: { type: 'REQUEST_COUNT', requestCount: 4 },
    workers: { min: WORKERS, max: WORKERS },
  });
  assert.equal(made?.status, 201, made?.text);
  const endpointId = made?.body.id ?? '';
  const acknowledged = new Map<string, number>();
  let over = false;
  let next = 0;
  let retries = 0;
  /**
   * A server that was killed answers nothing; another one is asked then, as a client behind a load balancer
   * does.
   */
  const ask = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    for (let attempt = 0; ; attempt += 1) {
      const { server } = random.pick(servers.slots) ?? assert.fail();
      try {
        const answer = await server.client().call<T>(method, path, body);
        if (answer.status === 200) return answer.body;
        assert.ok([502, 503].includes(answer.status), answer.text);
      } catch (error) {
        if (error instanceof assert.AssertionError || attempt > 200) throw error;
      }
      retries += 1;
      await pause(50);
    }
  };
  const submit = async (): Promise<void> => {
    while (!over) {
      const input = (next += 1);
      acknowledged.set((await ask<{ id: string }>('POST', `/v2/${endpointId}/run`, { input })).id, input);
      await pause(random.between(5, 60));
    }
  };
  const load = Promise.all(Array.from({ length: CLIENTS }, submit));
  for (let kill = 0; kill < KILLS; kill += 1) {
    await pause(random.between(500, 2_500));
    const slot = random.pick(servers.slots) ?? assert.fail();
    await slot.server.kill();
    await pause(random.between(0, 1_500));
    await servers.restart(slot);
  }
  over = true;
  await load;

  const ends: Record<string, number> = {};
  for (const [id, input] of acknowledged) {
    const end = await waitFor(
      `job ${id} has ended`,
      async () => {
        const job = await ask<{ status: string; output?: unknown }>('GET', `/v2/${endpointId}/status/${id}`);
        return !['IN_QUEUE', 'IN_PROGRESS'].includes(job.status) && job;
      },
      90_000,
    );
    ends[end.status] = (ends[end.status] ?? 0) + 1;
    if (end.status === 'COMPLETED') assert.equal(end.output, input);
  }
  process.stdout.write(
    `three servers: ${KILLS} kills, ${acknowledged.size} jobs, ${retries} repeated requests: ${JSON.stringify(ends)}\n`,
  );
  assert.deepEqual(ends, { COMPLETED: acknowledged.size });

  const running = await waitFor(
    'the wanted workers run, and no others',
    async () => {
      const lists = await Promise.all(
        servers.slots.map(({ server }) => listWorkers(server.client(), endpointId)),
      );
      const here = instances().filter((id) => processesOfInstance(id).length > 0);
      return lists.every((list) => list.length === WORKERS) && here.length === WORKERS && here;
    },
    60_000,
  );
  assert.equal(new Set(running).size, WORKERS);

  const { server: any } = random.pick(servers.slots) ?? assert.fail();
  assert.equal((await any.client().call('DELETE', `/v2/serverless/${endpointId}`)).status, 204);
  await waitFor(
    'nothing of it is left',
    async () => (await servers.number('select count(*) from workers')) === 0,
    60_000,
  );
  const intervals = "from usage_stretches where kind = 'serverless'";
  assert.equal(
    await servers.number(`select count(*) ${intervals} and ended_at < 9000000000`),
    await servers.number(`select count(distinct unit_id) ${intervals}`),
    'every worker is billed once, to its end',
  );
});

/** The folders of instances of all three. */
function instances(): string[] {
  return servers.slots.flatMap(({ data }) => {
    try {
      return readdirSync(join(data, 'instances'));
    } catch {
      return [];
    }
  });
}
