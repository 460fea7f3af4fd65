import { setTimeout as pause } from 'node:timers/promises';
import type { ApiClient } from '../../packages/testing/src/api-client.ts';
import type { ServerSlot, SeveralServers } from '../../packages/testing/src/several-servers-fixture.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { MILLISECONDS } from './bench-report.ts';
import type { Report } from './bench-report.ts';

/**
 * What happens to the server that leads, how it is undone, and within which time another one has to continue.
 */
const FAULTS: Record<
  string,
  { barMs: number; strike(slot: ServerSlot): void; undo(slot: ServerSlot): Promise<void> }
> = {
  'kill -9': {
    barMs: 5_000,
    strike: ({ server }) => void server.process.kill('SIGKILL'),
    undo: async ({ server }) => void (await server.ended),
  },
  freeze: {
    barMs: 5_000,
    strike: ({ server }) => void server.process.kill('SIGSTOP'),
    undo: async ({ server }) => {
      server.process.kill('SIGCONT');
      await server.kill();
    },
  },
  partition: {
    barMs: 5_000,
    strike: ({ cable }) => cable.freeze(),
    undo: async ({ server, cable }) => {
      cable.thaw();
      await server.kill();
    },
  },
  'graceful stop': {
    barMs: 500,
    strike: ({ server }) => void server.process.kill('SIGTERM'),
    undo: async ({ server }) => void (await server.ended),
  },
};

/**
 * Until the next server does the duties of the leader: it starts a worker for an endpoint that was created at
 * another server just before.
 */
export async function measureTakeovers(
  servers: SeveralServers,
  report: Report,
  rounds: number,
): Promise<void> {
  const figures: { name: string; values: number[] }[] = [];
  for (const [name, { barMs, strike, undo }] of Object.entries(FAULTS)) {
    const values: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const leader = await servers.leader();
      const [follower] = await servers.followers();
      const began = performance.now();
      strike(leader);
      // The former leader may still start it, in what is left of its time.
      await leaderChanges(servers, leader);
      const id = await createEchoEndpoint(follower?.server.client(), `${name}${round}`.replace(/\W/g, ''), 1);
      await waitFor(
        'a worker is started',
        async () => (await servers.number(`select count(*) from workers where endpoint_id = '${id}'`)) > 0,
      );
      values.push(performance.now() - began);
      await follower?.server.client().call('DELETE', `/v2/serverless/${id}`);
      await undo(leader);
      await servers.restart(leader);
      await pause(1_000);
    }
    figures.push({ name, values });
    const worst = Math.max(...values);
    report.bar({
      part: 'kills',
      what: `duties resume after: ${name}`,
      bar: `<= ${barMs} ms`,
      measured: `${Math.round(worst)} ms`,
      met: worst <= barMs,
    });
  }
  report.figures('until another server starts a worker', MILLISECONDS, figures);
}

async function leaderChanges(servers: SeveralServers, former: ServerSlot): Promise<void> {
  for (;;) {
    if ((await servers.leader()) !== former) return;
    await pause(5);
  }
}

export async function createEchoEndpoint(
  client: ApiClient | undefined,
  name: string,
  workers: number,
): Promise<string> {
  const made = await client?.call<{ id: string }>('POST', '/v2/serverless', {
    name,
    type: 'QUEUE',
    image: 'local/echo',
    cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    scaling: { type: 'REQUEST_COUNT', requestCount: 4 },
    workers: { min: workers, max: workers },
  });
  if (made?.status !== 201) throw new Error(`the endpoint ${name} could not be created: ${made?.text}`);
  return made.body.id;
}
