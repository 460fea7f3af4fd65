import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ClientRequest } from 'node:http';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import {
  responseOf,
  readResponse,
  loadBalancerFixture,
  waitForReadyWorkers,
  WORKER_HEADER,
} from '../packages/testing/src/load-balancer-fixture.ts';
import type {
  LoadBalancedWorkerState,
  LoadBalancerEndpoint,
} from '../packages/testing/src/load-balancer-fixture.ts';
import { listWorkers } from '../packages/testing/src/deploy-handler.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

/** As many as may wait for a worker. */
const ROOM = 1000;
/** As many as come on top of that. */
const SURPLUS = 10;
/**
 * As many as connect at the same time: more than a listen backlog holds would be tried again seconds later.
 */
const BATCH = 101;

describe('the workers of a load balancing endpoint', () => {
  const fixture = loadBalancerFixture();

  test('start when a request comes; it waits until the health check says 200, and not 204', async () => {
    const endpoint = await fixture.endpoint({ workers: { min: 0, max: 1 }, env: { STARTING_PINGS: '3' } });
    assert.deepEqual(await listWorkers(fixture.client, endpoint.id), []);
    const answer = endpoint.call<LoadBalancedWorkerState>('GET', '/about');
    await waitFor('the worker starts', async () =>
      (await listWorkers(fixture.client, endpoint.id)).some(({ status }) => status === 'INITIALIZING'),
    );
    const { status, body } = await answer;
    assert.equal(status, 200);
    assert.deepEqual(body.pings.slice(0, 4), [204, 204, 204, 200]);
    assert.deepEqual(await waitForReadyWorkers(fixture.client, endpoint.id, 1), [body.worker]);
  });

  test('that are not ready yet have at most 1000 requests waiting; the rest gets 503 with Retry-After', async () => {
    const endpoint = await fixture.endpoint({
      workers: { min: 0, max: 1 },
      env: { STARTING_PINGS: '1000000' },
    });
    const refused: unknown[] = [];
    const { promise: allRefused, resolve } = Promise.withResolvers<void>();
    const requests: ClientRequest[] = [];
    while (requests.length < ROOM + SURPLUS) {
      const batch = Array.from({ length: BATCH }, () => endpoint.openRequest('/about').end());
      requests.push(...batch);
      for (const asking of batch)
        void readResponse(asking).then(
          (answer) => refused.push(refusalOf(answer)) === SURPLUS && resolve(),
          () => undefined,
        );
      await Promise.all(batch.map((asking) => once(asking, 'finish')));
    }
    await allRefused;
    const late = await readResponse(endpoint.openRequest('/about').end());
    assert.deepEqual(
      [...refused, refusalOf(late)],
      Array.from({ length: SURPLUS + 1 }, () => [503, '5', { error: 'no workers available' }]),
    );
    for (const asking of requests) asking.destroy();
  });

  test('get the next request when least busy, or when a request asks for this worker', async () => {
    const endpoint = await fixture.endpoint({ workers: { min: 2, max: 2 } });
    const ready = await waitForReadyWorkers(fixture.client, endpoint.id, 2);
    const [first = '', second = ''] = ready;
    const open = async (name: string, affinity?: string): Promise<string> => {
      const response = await responseOf(
        endpoint
          .openRequest(
            `/open/${name}`,
            affinity === undefined ? {} : { headers: { [WORKER_HEADER]: affinity } },
          )
          .end(),
      );
      assert.equal(response.statusCode, 200);
      response.resume();
      return String(response.headers[WORKER_HEADER]);
    };
    assert.deepEqual(
      [await open('a', first), await open('b', `strict ${first}`), await open('c', `strict-resume ${first}`)],
      [first, first, first],
    );
    for (const name of ['d', 'e', 'f']) assert.equal(await open(name), second);
    assert.deepEqual([await open('g'), await open('h')].sort(), [...ready].sort());
    assert.equal(await open('i', 'nosuchworker1'), await workerWith(endpoint, ready, 'i'));
    for (const kind of ['strict', 'strict-resume']) {
      const { status, body } = await endpoint.call<{ reason: string }>('GET', '/about', undefined, {
        [WORKER_HEADER]: `${kind} nosuchworker1`,
      });
      assert.deepEqual([status, body.reason], [404, 'affinity_worker_gone']);
    }
  });

  test('have a limited number of requests; further ones wait or start another worker', async () => {
    const endpoint = await fixture.endpoint({
      workers: { min: 1, max: 2, idleTimeout: 60 },
      requestCount: 2,
    });
    await waitForReadyWorkers(fixture.client, endpoint.id, 1);
    const responses = await Promise.all(
      Array.from({ length: 4 }, (_, number) => responseOf(endpoint.openRequest(`/open/${number}`).end())),
    );
    const by = responses.map(({ headers }) => String(headers[WORKER_HEADER]));
    assert.deepEqual(
      [...new Set(by)].map((worker) => by.filter((other) => other === worker).length),
      [2, 2],
    );
    const fifth = readResponse(endpoint.openRequest('/fifth').end());
    responses[0]?.destroy();
    assert.equal((await fifth).headers[WORKER_HEADER], by[0]);
    for (const response of responses) response.destroy();
  });

  test('that stopped idle are started again under their id for strict-resume requests', async () => {
    const endpoint = await fixture.endpoint({ workers: { min: 0, max: 1, idleTimeout: 1 } });
    const asked = (affinity?: string): Promise<{ status: number; headers: Headers }> =>
      endpoint.call('GET', '/seen', undefined, affinity === undefined ? {} : { [WORKER_HEADER]: affinity });
    const worker = (await asked()).headers.get(WORKER_HEADER) ?? '';
    await waitFor(
      'the worker has left',
      async () => (await listWorkers(fixture.client, endpoint.id)).length === 0,
    );
    assert.equal((await asked(`strict ${worker}`)).status, 404);
    for (let time = 0; time < 2; time += 1) {
      const { status, headers } = await asked(`strict-resume ${worker}`);
      assert.deepEqual([status, headers.get(WORKER_HEADER)], [200, worker]);
    }
  });

  test('that leave because they were idle lose no request', async () => {
    const endpoint = await fixture.endpoint({ workers: { min: 0, max: 1, idleTimeout: 1 } });
    const answers: Promise<{ status: number; headers: Headers }>[] = [];
    for (let burst = 0; burst < 10; burst += 1) {
      for (let count = 0; count < 50; count += 1) {
        answers.push(endpoint.call('GET', '/seen'));
        await pause(10);
      }
      await Promise.all(answers);
      // A worker leaves at the first look after its second of idleness; looks are half a second apart.
      await pause(950 + burst * 70);
    }
    const all = await Promise.all(answers);
    assert.deepEqual(
      all.filter(({ status }) => status !== 200),
      [],
    );
    assert.ok(
      new Set(all.map(({ headers }) => headers.get(WORKER_HEADER))).size > 1,
      'none has left meanwhile',
    );
  });
});

function refusalOf({ status, headers, text }: Awaited<ReturnType<typeof readResponse>>): unknown[] {
  return [status, headers['retry-after'], JSON.parse(text)];
}

async function workerWith(
  endpoint: LoadBalancerEndpoint,
  workers: readonly string[],
  name: string,
): Promise<string | undefined> {
  for (const worker of workers) if ((await endpoint.workerState(worker)).open.includes(name)) return worker;
  return undefined;
}
