import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES, createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import {
  podAction,
  createPod,
  waitForPodStatus,
  containerLogLines,
  podLog,
  getPod,
  processesOfInstance,
} from '../packages/testing/src/pod-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { parseLogLines } from '../packages/testing/src/server-fixture.ts';
import { repeats } from '../packages/testing/src/test-tier.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const ENV = { BERTH_RATE_LIMITS: 'off', BERTH_DOCKER: 'off' };
const PODS = repeats({ usually: 6, long: 20 });
const COUNTS = ['sh', '-c', 'i=0; while :; do i=$((i+1)); echo "$i"; sleep 0.05; done'];

for (const kind of DATABASES) {
  describe(`pods and the end of the server, on ${kind}`, () => {
    let place: TestDatabase;
    let server: ServerProcess;
    before(async () => {
      place = await createTestDatabase(kind);
      server = await startServerProcess(place, ENV);
    });
    after(async () => {
      await server.stop();
      await place.drop();
    });

    test(`killed while ${PODS} pods run: all go on, are taken up, and their logs have no gap`, async () => {
      const made = await Promise.all(
        Array.from({ length: PODS }, (_, index) =>
          createPod(server.client(), { name: `p${index}`, cmd: COUNTS }),
        ),
      );
      const ids = made.map(({ body }) => body.id);
      for (const id of ids) await waitForPodStatus(server.client(), id, 'RUNNING');
      const before = new Map(
        await Promise.all(
          ids.map(
            async (id) =>
              [
                id,
                { pids: processesOfInstance(id), startedAt: (await getPod(server.client(), id)).startedAt },
              ] as const,
          ),
        ),
      );
      const lastSeen = new Map(
        await Promise.all(
          ids.map(
            async (id) => [id, (await podLog(server.client(), id, '&tail=1&source=container'))[0]] as const,
          ),
        ),
      );
      await server.kill();
      server = await startServerProcess(place, ENV);
      const client = server.client();
      for (const id of ids) {
        const found = await getPod(client, id);
        assert.deepEqual([found.status, found.startedAt], ['RUNNING', before.get(id)?.startedAt]);
        assert.ok(
          processesOfInstance(id).some((pid) => before.get(id)?.pids.includes(pid)),
          'the same process',
        );
      }
      const [one = '', two = '', three = '', ...rest] = ids;
      // A follower who was cut off by the crash goes on where it was, and misses nothing either.
      for (const id of ids) {
        const lines = await waitFor('more than fifty lines are there', async () => {
          const written = await containerLogLines(client, id);
          return written.length > 50 && written;
        });
        assert.deepEqual(
          lines,
          lines.map((_, index) => String(index + 1)),
        );
        const seen = lastSeen.get(id) ?? { id: '', line: '' };
        const resumed = (await podLog(client, id, '&source=container', { 'last-event-id': seen.id })).map(
          ({ line }) => Number(line),
        );
        assert.deepEqual(
          resumed,
          resumed.map((_, index) => Number(seen.line) + index + 1),
        );
        assert.ok(resumed.length > 0);
      }
      assert.equal((await podAction(client, one, 'stop')).body.status, 'EXITED');
      assert.deepEqual(processesOfInstance(one), []);
      assert.equal((await podAction(client, two, 'restart')).status, 200);
      await waitForPodStatus(client, two, 'RUNNING');
      const [victim = 0] = processesOfInstance(three).filter((pid) => before.get(three)?.pids.includes(pid));
      process.kill(victim, 'SIGKILL');
      assert.match((await waitForPodStatus(client, three, 'ERROR')).statusDetail ?? '', /SIGKILL/);
      await Promise.all(
        [one, two, three, ...rest].map(async (id) =>
          assert.equal((await client.call('DELETE', `/v2/pods/${id}`)).status, 204),
        ),
      );
      for (const id of ids) assert.deepEqual(processesOfInstance(id), []);
      assert.deepEqual(
        parseLogLines(server).filter(({ level }) => level === 'error'),
        [],
      );
    });

    test('requests and exits during the outage are reconciled at the next start', async () => {
      const client = server.client();
      const ended = (
        await createPod(client, {
          cmd: ['sh', '-c', 'while test ! -e "$BERTH_ROOT/go"; do sleep 0.05; done; exit 7'],
        })
      ).body.id;
      await waitForPodStatus(client, ended, 'RUNNING');
      const begun = (await createPod(client)).body.id;
      await server.kill();
      const [victim = 0] = processesOfInstance(ended);
      process.kill(victim, 'SIGTERM');
      await waitFor('it is gone', async () => processesOfInstance(ended).length === 0);
      server = await startServerProcess(place, ENV);
      await waitForPodStatus(server.client(), ended, 'ERROR');
      await waitForPodStatus(server.client(), begun, 'RUNNING');
      await waitFor('it runs once', async () => processesOfInstance(begun).length === 1);
      for (const id of [ended, begun]) await server.client().call('DELETE', `/v2/pods/${id}`);
    });
  });
}
