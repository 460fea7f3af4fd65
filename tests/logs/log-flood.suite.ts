import assert from 'node:assert/strict';
import { get } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { createTestDatabase } from '../../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../../packages/testing/src/test-database.ts';
import type { EngineFixture } from '../../packages/testing/src/engine-fixture.ts';
import { createPod, waitForPodStatus, podLog } from '../../packages/testing/src/pod-client.ts';
import { startServerProcess } from '../../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../../packages/testing/src/server-process.ts';
import { parseLogLines } from '../../packages/testing/src/server-fixture.ts';
import { repeats } from '../../packages/testing/src/test-tier.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

const LINES = repeats({ usually: 100_000, long: 500_000 });
const PER_SECOND = 50_000;
/** Most lines do not fit into the log of the process engine, so that a late follower misses some. */
const LOG_BYTES = LINES * 10;
const REST_OF_LINE = 'x'.repeat(30);
const lineOf = (number: number): string => `line ${number} ${REST_OF_LINE}`;
/** Writes numbered lines at this pace, ten times a second, once somebody has had time to come. */
const FLOOD = `
const [lines, perSecond] = [${LINES}, ${PER_SECOND}];
let next = 1;
const since = Date.now() + 1000;
const timer = setInterval(() => {
  let text = '';
  for (const until = Math.min(lines, ((Date.now() - since) * perSecond) / 1000); next <= until; next += 1)
    text += 'line ' + next + ' ${REST_OF_LINE}\\n';
  process.stdout.write(text);
  if (next > lines) clearInterval(timer);
}, 100);
`;

/** What a follower was told: each number that came, in order, and how many were said to be dropped. */
interface FollowedLog {
  numbers: number;
  dropped: number;
  /** The first thing that is wrong. */
  problem: string | undefined;
  lastId: string;
  heartbeats: number;
}

/** What a log does with more than anybody wants to read. */
export function logFloodSuite(name: string, open: () => Promise<EngineFixture>): void {
  describe(`a flood of lines of the ${name} engine`, { concurrency: true }, () => {
    let engine: EngineFixture;
    let place: TestDatabase;
    let server: ServerProcess;
    before(async () => {
      engine = await open();
      place = await createTestDatabase('sqlite');
      server = await startServerProcess(place, {
        BERTH_RATE_LIMITS: 'off',
        BERTH_INSTANCE_LOG_SIZE: `${LOG_BYTES}`,
        ...engine.env,
      });
      await waitFor('the data center is there', async () =>
        (await server.client().call('GET', '/v2/catalog/datacenters')).text.includes(engine.dataCenterId),
      );
    });
    after(async () => {
      assert.deepEqual(
        parseLogLines(server).filter(({ level }) => level === 'error'),
        [],
      );
      await server.stop();
      await engine.close();
      await place.drop();
    });

    test('every line reaches a follower or is reported as dropped, also after a pause and a reconnect', {
      timeout: 90_000,
    }, async (context) => {
      const {
        body: { id },
      } = await createPod(server.client(), { image: engine.image, cmd: ['node', '-e', FLOOD] });
      const from = performance.now();
      const eager = follow(server, id);
      const slow = follow(server, id, { readsAfter: eager });
      const leaving = follow(server, id, { leavesAfter: LINES / 5 });
      const first = await leaving;
      assert.equal(first.problem, undefined);
      const goesOn = async (): Promise<FollowedLog> => {
        const rest = { after: first.numbers + first.dropped, lastId: first.lastId };
        const told = await follow(server, id, rest);
        return { ...told, numbers: told.numbers + first.numbers, dropped: told.dropped + first.dropped };
      };
      const back = goesOn();
      const told = [await eager, await slow, await back, await goesOn()];
      context.diagnostic(
        `${Math.round(performance.now() - from)} ms; numbers and dropped: ` +
          `${told.map(({ numbers, dropped }) => `${numbers}+${dropped}`).join(', ')}`,
      );
      for (const { numbers, dropped, problem } of told)
        assert.deepEqual([problem, numbers + dropped], [undefined, LINES]);
      if (engine.name === 'process') assert.ok((told.at(-1)?.dropped ?? 0) > 0, 'who is late misses some');
      await waitForPodStatus(server.client(), id, 'EXITED');

      const tail = await podLog(server.client(), id, '&tail=5000&source=container');
      assert.deepEqual(
        [tail.length, tail[0]?.line, tail.at(-1)?.line],
        [5000, lineOf(LINES - 4999), lineOf(LINES)],
        'it stays readable',
      );
      assert.equal((await server.client().call('DELETE', `/v2/pods/${id}`)).status, 204);
      assert.equal(
        (await podLog(server.client(), id, '&tail=1&source=container'))[0]?.line,
        lineOf(LINES),
        'also when the pod is gone',
      );
    });

    test('while nothing is written, the line is kept alive', { timeout: 60_000 }, async () => {
      const {
        body: { id },
      } = await createPod(server.client(), {
        image: engine.image,
        cmd: ['node', '-e', 'setTimeout(() => console.log("line 1"), 18000)'],
      });
      const told = await follow(server, id);
      assert.deepEqual([told.numbers, told.problem], [1, undefined]);
      assert.ok(told.heartbeats >= 1);
    });
  });
}

async function follow(
  { url, key }: ServerProcess,
  id: string,
  {
    readsAfter,
    leavesAfter = Infinity,
    lastId = '',
    after: known = 0,
  }: { readsAfter?: Promise<unknown>; leavesAfter?: number; lastId?: string; after?: number } = {},
): Promise<FollowedLog> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(
      `${url}/v2/pods/${id}/logs`,
      { headers: { authorization: `Bearer ${key}`, ...(lastId !== '' && { 'last-event-id': lastId }) } },
      resolve,
    ).on('error', reject);
  });
  assert.equal(response.statusCode, 200);
  response.pause();
  await readsAfter;
  const told: FollowedLog = { numbers: 0, dropped: 0, problem: undefined, lastId, heartbeats: 0 };
  let expected = known + 1;
  let rest = '';
  for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
    const frames = (rest + chunk).split('\n\n');
    rest = frames.pop() ?? '';
    for (const frame of frames) {
      if (frame.startsWith(': ping')) told.heartbeats += 1;
      if (!frame.startsWith('id: ')) continue;
      const [head = '', data = ''] = frame.split('\n');
      const { line, source } = JSON.parse(data.slice('data: '.length)) as { line: string; source: string };
      const dropped = Number(/^(\d+) lines? (?:was|were) dropped here/.exec(line)?.[1] ?? 0);
      if (source === 'system') {
        told.dropped += dropped;
        expected += dropped;
      } else {
        const number = Number.parseInt(line.slice('line '.length), 10);
        if (number !== expected) told.problem ??= `expected ${expected}, got ${JSON.stringify(line)}`;
        expected = number + 1;
        told.numbers += 1;
      }
      told.lastId = head.slice('id: '.length);
      if (told.numbers + told.dropped >= leavesAfter) return told;
    }
  }
  return told;
}
