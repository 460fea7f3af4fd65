import assert from 'node:assert/strict';
import { afterEach, before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import {
  podAction,
  createPod,
  waitForPodStatus,
  containerLogLines,
  podLog,
  getPod,
  SLEEP_COMMAND,
} from '../packages/testing/src/pod-client.ts';
import type { PodView } from '../packages/testing/src/pod-client.ts';
import { listAuditLog, serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const RTX = 'NVIDIA GeForce RTX 4090';
const A100 = 'NVIDIA A100 80GB PCIe';
const STUBBORN = ['sh', '-c', 'trap "" TERM; echo up; while :; do sleep 0.2; done'];

for (const kind of DATABASES) {
  describe(`interruptible pods, on ${kind}`, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off', BERTH_GPUS: `2x ${RTX},4x ${A100}` });
    let ann: TestAccount;
    let bob: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
      bob = await fixture.createAccount('bob');
    });
    afterEach(async () => {
      for (const client of [ann, bob]) {
        for (const { id, locked } of (await client.call<{ pods: PodView[] }>('GET', '/v2/pods')).body.pods) {
          if (locked) await client.call('PATCH', `/v2/pods/${id}`, { locked: false });
          await client.call('DELETE', `/v2/pods/${id}`);
        }
      }
    });

    const spot = async (
      client: TestAccount,
      gpuTypeId: string,
      bidPerGpu: number,
      cmd: readonly string[] = SLEEP_COMMAND,
    ): Promise<string> => {
      const { body, text } = await client.graphql<{ podRentInterruptable: { id: string } }>(
        'mutation ($input: PodRentInterruptableInput) { podRentInterruptable(input: $input) { id } }',
        {
          input: {
            imageName: 'local/shell',
            dockerArgs: JSON.stringify({ entrypoint: [], cmd }),
            gpuTypeId,
            gpuCount: 1,
            bidPerGpu,
            name: 'spot',
          },
        },
      );
      assert.equal(body.errors, undefined, text);
      const id = body.data?.podRentInterruptable.id ?? '';
      await waitForPodStatus(client, id, 'RUNNING');
      return id;
    };

    test('one is signalled, and stopped after a grace period, when another pod needs its place', async () => {
      const polite = await spot(bob, RTX, 0.5, [
        'sh',
        '-c',
        'trap "echo saving; exit 0" TERM; echo up; while :; do sleep 0.2; done',
      ]);
      const stubborn = await spot(bob, RTX, 0.6, STUBBORN);
      await waitFor(
        'both are up',
        async () =>
          (await containerLogLines(bob, polite)).includes('up') &&
          (await containerLogLines(bob, stubborn)).includes('up'),
      );
      const wanted = await createPod(ann, { gpu: { id: RTX, count: 2 } });
      assert.equal(wanted.status, 201, wanted.text);
      const from = Date.now();
      await waitForPodStatus(ann, wanted.body.id, 'RUNNING');
      assert.ok(Date.now() - from < 15_000);
      for (const id of [polite, stubborn]) {
        const gone = await waitForPodStatus(bob, id, 'EXITED');
        assert.match(gone.statusDetail ?? '', /^Interrupted: /);
        assert.deepEqual(gone.actions, ['start', 'terminate']);
        assert.ok(
          (await listAuditLog(bob)).some(
            (entry) =>
              entry['action'] === 'interrupt' &&
              entry['resourceId'] === id &&
              entry['interface'] === 'system',
          ),
        );
        const v1 = (
          await bob.call<{ desiredStatus: string; lastStatusChange: string }>('GET', `/v1/pods/${id}`)
        ).body;
        assert.deepEqual([v1.desiredStatus, /^Interrupted/.test(v1.lastStatusChange)], ['EXITED', true]);
      }
      assert.ok((await containerLogLines(bob, polite)).includes('saving'));
      assert.ok(
        (await podLog(bob, stubborn)).some(
          ({ source, line }) => source === 'system' && /Asked to end, within 5 s/.test(line),
        ),
      );

      // No room to come back, then there is.
      const resume = `mutation { podBidResume(input: { podId: "${polite}", bidPerGpu: 0.7, gpuCount: 1 }) { id
        desiredStatus costPerHr } }`;
      assert.match(
        (await bob.graphql(resume)).body.errors?.[0]?.message ?? '',
        /no longer any instances available/,
      );
      assert.equal((await getPod(bob, polite)).status, 'EXITED');
      assert.equal((await ann.call('DELETE', `/v2/pods/${wanted.body.id}`)).status, 204);
      assert.deepEqual((await bob.graphql<{ podBidResume: object }>(resume)).body.data?.podBidResume, {
        id: polite,
        desiredStatus: 'RUNNING',
        costPerHr: 0.7,
      });
      assert.equal((await waitForPodStatus(bob, polite, 'RUNNING')).statusDetail, null);
    });

    test('while some are still leaving, the next pod interrupts no more than it needs and is not refused', async () => {
      const spots: string[] = [];
      for (const bid of [1.1, 1.2, 1.3, 1.4]) spots.push(await spot(bob, A100, bid, STUBBORN));
      for (const id of spots)
        await waitFor('it is up', async () => (await containerLogLines(bob, id)).includes('up'));
      const interrupted = async (): Promise<boolean[]> =>
        Promise.all(
          spots.map(async (id) => /^Interrupted: /.test((await getPod(bob, id)).statusDetail ?? '')),
        );
      const pendingTakes: string[] = [];
      for (const count of [1, 2, 3, 4]) {
        const pendingTake = await createPod(ann, { gpu: { id: A100 } });
        assert.equal(pendingTake.status, 201, pendingTake.text);
        pendingTakes.push(pendingTake.body.id);
        assert.deepEqual(
          await interrupted(),
          spots.map((_, index) => index < count),
        );
      }
      assert.equal((await createPod(ann, { gpu: { id: A100 } })).status, 400, 'all places are promised');
      for (const id of pendingTakes) await waitForPodStatus(ann, id, 'RUNNING');
      for (const id of spots) await waitForPodStatus(bob, id, 'EXITED');
    });

    test('the lowest bids go first, no more than needed, none locked, none for an interruptible pod', async () => {
      const bids: [string, number][] = [];
      for (const bid of [1.5, 1.2, 1.9, 1.3]) bids.push([await spot(bob, A100, bid), bid]);
      const [[highMiddle = ''] = [], [lowest = ''] = [], [highest = ''] = [], [low = ''] = []] = bids;
      await bob.call('PATCH', `/v2/pods/${lowest}`, { locked: true });
      const one = await createPod(ann, { gpu: { id: A100 } });
      await waitForPodStatus(ann, one.body.id, 'RUNNING');
      const states = async (): Promise<string[]> =>
        Promise.all([lowest, low, highMiddle, highest].map(async (id) => (await getPod(bob, id)).status));
      // Its place is free a moment before its end is recorded.
      await waitForPodStatus(bob, low, 'EXITED');
      assert.deepEqual(await states(), ['RUNNING', 'EXITED', 'RUNNING', 'RUNNING']);
      const another = await bob.graphql(
        'mutation ($input: PodRentInterruptableInput) { podRentInterruptable(input: $input) { id } }',
        { input: { imageName: 'local/shell', dockerArgs: 'sleep 100', gpuTypeId: A100, bidPerGpu: 5 } },
      );
      assert.match(another.body.errors?.[0]?.message ?? '', /no longer any instances available/);
      const tooMany = await createPod(ann, { gpu: { id: A100, count: 3 } });
      assert.equal(tooMany.status, 400, 'interrupting all that may go would not be enough');
      assert.deepEqual(await states(), ['RUNNING', 'EXITED', 'RUNNING', 'RUNNING']);
      await podAction(ann, one.body.id, 'stop');
      await bob.call('POST', `/v2/pods/${low}/action`, { action: 'start' });
      await waitForPodStatus(bob, low, 'RUNNING');
      const back = await podAction(ann, one.body.id, 'start');
      assert.equal(back.status, 200, back.text);
      await waitForPodStatus(ann, one.body.id, 'RUNNING');
      await waitForPodStatus(bob, low, 'EXITED');
      assert.deepEqual(
        await states(),
        ['RUNNING', 'EXITED', 'RUNNING', 'RUNNING'],
        'also for one that is started again',
      );
    });
  });
}
