import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { DATABASES, createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import {
  podAction,
  createPod,
  waitForPodStatus,
  processesOfInstance,
} from '../packages/testing/src/pod-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { parseLogLines } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const ENV = { BERTH_RATE_LIMITS: 'off' };
const PODS = 11;
/** Writes down when it runs, in milliseconds, until it is told to end or a file says so. */
const WATCHED =
  'trap \'date +%s%3N >"$NOTES.end"; exit 0\' TERM; date +%s%3N >"$NOTES.start"; while test ! -e ' +
  '"$NOTES.go"; do sleep 0.2; done; date +%s%3N >"$NOTES.end"';
const AWAY_MS = 2_500;

for (const kind of DATABASES) {
  describe(`billing and the end of the server, on ${kind}`, () => {
    let place: TestDatabase;
    let server: ServerProcess;
    let notes: string;
    before(async () => {
      place = await createTestDatabase(kind);
      notes = mkdtempSync(join(tmpdir(), 'berth-notes-'));
      server = await startServerProcess(place, ENV);
    });
    after(async () => {
      await server.stop();
      await place.drop();
      rmSync(notes, { recursive: true });
    });
    const noted = (index: number, what: 'start' | 'end'): number =>
      Number(readFileSync(join(notes, `${index}.${what}`), 'utf8'));
    const billed = async (id: string): Promise<number> => {
      const { body, text } = await server
        .client()
        .call<{ timeBilledMs: number; podId: string }[]>(
          'GET',
          `/v1/billing/pods?grouping=podId&bucketSize=year&podId=${id}`,
        );
      assert.ok(body.length === 1 || body.length === 2, text);
      return body.reduce((sum, { timeBilledMs }) => sum + timeBilledMs, 0);
    };
    const end = (indexes: number[]): void =>
      indexes.forEach((index) => writeFileSync(join(notes, `${index}.go`), ''));
    /** It is dead for so long that a pod that is billed on would show it. */
    const beAway = async (): Promise<void> => {
      const since = Date.now();
      await waitFor('it was away for a while', async () => Date.now() - since > AWAY_MS);
    };

    test(`killed twice while ${PODS} pods run and end: each is billed for the time that it ran`, async () => {
      const askedAt = Date.now();
      const made = await Promise.all(
        Array.from({ length: PODS }, (_, index) =>
          createPod(server.client(), {
            name: `p${index}`,
            cmd: ['sh', '-c', WATCHED],
            env: { NOTES: join(notes, String(index)) },
          }),
        ),
      );
      const ids = made.map(({ body }) => body.id);
      const [whileDead, stopped, whileDeadAgain, killed, running] = [
        [0, 1, 2],
        [3, 4, 5],
        [6],
        [7, 8],
        [9, 10],
      ] as const;
      for (const id of ids) await waitForPodStatus(server.client(), id, 'RUNNING');
      await waitFor('all have begun', async () =>
        ids.every((_, index) => existsSync(join(notes, `${index}.start`))),
      );

      await server.kill();
      end([...whileDead]);
      await waitFor('some have ended', async () =>
        whileDead.every((index) => processesOfInstance(ids[index] ?? '').length === 0),
      );
      await beAway();
      server = await startServerProcess(place, ENV);
      for (const index of whileDead) await waitForPodStatus(server.client(), ids[index] ?? '', 'EXITED');

      // In the middle of stops that were asked for.
      const asked = stopped.map((index) =>
        podAction(server.client(), ids[index] ?? '', 'stop').catch(() => undefined),
      );
      await waitFor('the first stop is under way', async () =>
        stopped.some((index) => existsSync(join(notes, `${index}.end`))),
      );
      await server.kill();
      await Promise.all(asked);
      end([...whileDeadAgain]);
      await waitFor('others have ended', async () =>
        whileDeadAgain.every((index) => processesOfInstance(ids[index] ?? '').length === 0),
      );
      await beAway();
      server = await startServerProcess(place, ENV);
      // A stop that did not reach the disk was not promised to anybody; it is asked for again.
      for (const index of stopped) await podAction(server.client(), ids[index] ?? '', 'stop');
      for (const index of [...stopped, ...whileDeadAgain])
        await waitFor('it has ended', async () =>
          ['EXITED', 'ERROR'].includes(
            (await server.client().call<{ status: string }>('GET', `/v2/pods/${ids[index]}`)).body.status,
          ),
        );

      const killedAt = new Map<number, number>();
      for (const index of killed) {
        // Of its processes the one that counts; the others come and go.
        const victim = await waitFor('its shell is there', async () =>
          processesOfInstance(ids[index] ?? '').find(
            (pid) =>
              existsSync(`/proc/${pid}/cmdline`) &&
              readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('sh\0'),
          ),
        );
        process.kill(victim, 'SIGKILL');
        killedAt.set(index, Date.now());
        await waitForPodStatus(server.client(), ids[index] ?? '', 'ERROR');
      }
      for (const [index, id] of ids.entries()) {
        const isRunning = (running as readonly number[]).includes(index);
        const asking = Date.now();
        const time = await billed(id);
        const trueEnd = killedAt.get(index) ?? (isRunning ? (asking + Date.now()) / 2 : noted(index, 'end'));
        const slack = 1_000 + (isRunning ? (Date.now() - asking) / 2 : 0);
        // It began after it was asked for, and before it could write that down: on a busy machine that is a
        // while.
        const [shortest, longest] = [trueEnd - noted(index, 'start'), trueEnd - askedAt];
        assert.ok(
          time > shortest - slack && time < longest + slack,
          `pod ${index} is billed for ${time} ms; it ran for ${shortest} to ${longest}`,
        );
      }
      await Promise.all(
        ids.map(async (id) =>
          assert.equal((await server.client().call('DELETE', `/v2/pods/${id}`)).status, 204),
        ),
      );
      for (const id of ids) assert.ok((await billed(id)) > 0, 'its history outlives it');
      assert.deepEqual(
        parseLogLines(server).filter(({ level }) => level === 'error'),
        [],
      );
    });
  });
}
