import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES, freshDatabase } from './support/databases.ts';
import type { TestDatabase } from './support/databases.ts';
import { act, createPod, has, linesOf, logOf, pod, processesOf } from './support/pods.ts';
import { startServer } from './support/server.ts';
import type { TestServer } from './support/server.ts';
import { until } from './support/serverless.ts';
import { logLines } from './support/story.ts';

const ENV = { BERTH_RATE_LIMITS: 'off', BERTH_DOCKER: 'off' };
const PODS = 20;
const COUNTS = ['sh', '-c', 'i=0; while :; do i=$((i+1)); echo "$i"; sleep 0.05; done'];

for (const kind of DATABASES) {
  describe(`pods and the end of the server, on ${kind}`, () => {
    let place: TestDatabase;
    let server: TestServer;
    before(async () => {
      place = await freshDatabase(kind);
      server = await startServer(place, ENV);
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
      for (const id of ids) await has(server.client(), id, 'RUNNING');
      const before = new Map(
        await Promise.all(
          ids.map(
            async (id) =>
              [id, { pids: processesOf(id), startedAt: (await pod(server.client(), id)).startedAt }] as const,
          ),
        ),
      );
      const lastSeen = new Map(
        await Promise.all(
          ids.map(
            async (id) => [id, (await logOf(server.client(), id, '&tail=1&source=container'))[0]] as const,
          ),
        ),
      );
      await server.kill();
      server = await startServer(place, ENV);
      const client = server.client();
      for (const id of ids) {
        const found = await pod(client, id);
        assert.deepEqual([found.status, found.startedAt], ['RUNNING', before.get(id)?.startedAt]);
        assert.ok(
          processesOf(id).some((pid) => before.get(id)?.pids.includes(pid)),
          'the same process',
        );
      }
      const [one = '', two = '', three = '', ...rest] = ids;
      // A follower who was cut off by the crash goes on where it was, and misses nothing either.
      for (const id of ids) {
        const lines = await until('more than fifty lines are there', async () => {
          const written = await linesOf(client, id);
          return written.length > 50 && written;
        });
        assert.deepEqual(
          lines,
          lines.map((_, index) => String(index + 1)),
        );
        const seen = lastSeen.get(id) ?? { id: '', line: '' };
        const resumed = (await logOf(client, id, '&source=container', { 'last-event-id': seen.id })).map(
          ({ line }) => Number(line),
        );
        assert.deepEqual(
          resumed,
          resumed.map((_, index) => Number(seen.line) + index + 1),
        );
        assert.ok(resumed.length > 0);
      }
      assert.equal((await act(client, one, 'stop')).body.status, 'EXITED');
      assert.deepEqual(processesOf(one), []);
      assert.equal((await act(client, two, 'restart')).status, 200);
      await has(client, two, 'RUNNING');
      const [victim = 0] = processesOf(three).filter((pid) => before.get(three)?.pids.includes(pid));
      process.kill(victim, 'SIGKILL');
      assert.match((await has(client, three, 'ERROR')).statusDetail ?? '', /SIGKILL/);
      await Promise.all(
        [one, two, three, ...rest].map(async (id) =>
          assert.equal((await client.call('DELETE', `/v2/pods/${id}`)).status, 204),
        ),
      );
      for (const id of ids) assert.deepEqual(processesOf(id), []);
      assert.deepEqual(
        logLines(server).filter(({ level }) => level === 'error'),
        [],
      );
    });

    test('what was asked for and what ended while it was away is made good at the next start', async () => {
      const client = server.client();
      const ended = (
        await createPod(client, {
          cmd: ['sh', '-c', 'while test ! -e "$BERTH_ROOT/go"; do sleep 0.05; done; exit 7'],
        })
      ).body.id;
      await has(client, ended, 'RUNNING');
      const begun = (await createPod(client)).body.id;
      await server.kill();
      const [victim = 0] = processesOf(ended);
      process.kill(victim, 'SIGTERM');
      await until('it is gone', async () => processesOf(ended).length === 0);
      server = await startServer(place, ENV);
      await has(server.client(), ended, 'ERROR');
      await has(server.client(), begun, 'RUNNING');
      await until('it runs once', async () => processesOf(begun).length === 1);
      for (const id of [ended, begun]) await server.client().call('DELETE', `/v2/pods/${id}`);
    });
  });
}
