import assert from 'node:assert/strict';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { afterEach, describe, test } from 'node:test';
import { createGatewayFixture, stopWorker, waitUntil } from './gateway.fixture.ts';
import type { ReceivedResponse, GatewayFixture, GatewayFixtureOptions } from './gateway.fixture.ts';

describe('the choice of a worker and the waiting room', () => {
  let fixture: GatewayFixture;
  /** Requests that a worker holds, until the test answers them. */
  let held: { worker: string; path: string; response: ServerResponse }[] = [];

  const start = async (options: GatewayFixtureOptions): Promise<void> => {
    held = [];
    fixture = await createGatewayFixture(options);
  };
  afterEach(() => fixture.close());

  const holding =
    (worker: string): RequestListener =>
    (request: IncomingMessage, response: ServerResponse) =>
      void held.push({ worker, path: request.url ?? '', response });
  const answerAll = (): void => {
    for (const { response, path } of held.splice(0)) response.end(path);
  };
  const loads = (): Record<string, number> => Object.fromEntries(fixture.gateway.inFlightByWorker('ep1'));

  test('the least loaded worker gets the next request', async () => {
    await start({ endpoint: { scalerValue: 10 } });
    for (const id of ['a', 'b', 'c']) await fixture.worker(id, holding(id));
    const answers = Array.from({ length: 9 }, (_, number) => fixture.send(`/${number}`));
    await waitUntil(() => held.length === 9);
    assert.deepEqual(loads(), { a: 3, b: 3, c: 3 });
    for (const one of held.filter(({ worker }) => worker === 'b')) one.response.end();
    await waitUntil(() => fixture.gateway.demand('ep1') === 6);
    held = held.filter(({ worker }) => worker !== 'b');
    const more = Array.from({ length: 3 }, () => fixture.send('/more'));
    await waitUntil(() => held.length === 9);
    assert.deepEqual(loads(), { a: 3, c: 3, b: 3 });
    answerAll();
    await Promise.all([...answers, ...more]);
    assert.deepEqual(loads(), {});
  });

  test('of idle workers it is not always the same one', async () => {
    await start({});
    for (const id of ['a', 'b', 'c']) await fixture.worker(id, (_request, response) => response.end());
    const used = new Set<unknown>();
    for (let count = 0; count < 6; count += 1)
      used.add((await fixture.send('/')).headers['x-runpod-worker-id']);
    assert.equal(used.size, 3);
  });

  test('a worker has no more than its share, and who comes next waits its turn, in order', async () => {
    await start({ endpoint: { scalerValue: 2 } });
    await fixture.worker('a', holding('a'));
    const order: string[] = [];
    const answers: Promise<unknown>[] = [];
    for (let number = 0; number < 6; number += 1) {
      answers.push(fixture.send(`/${number}`).then(({ text }) => order.push(text)));
      await waitUntil(() => fixture.gateway.demand('ep1') === number + 1);
    }
    await waitUntil(() => held.length === 2);
    for (const expected of [
      ['/0', '/1'],
      ['/2', '/3'],
      ['/4', '/5'],
    ]) {
      await waitUntil(() => held.length === 2);
      assert.deepEqual(loads(), { a: 2 });
      assert.deepEqual(held.map(({ path }) => path).sort(), expected);
      answerAll();
    }
    await Promise.all(answers);
    assert.equal(order.length, 6);
  });

  test('requests without a worker wait, and are all sent when one is ready', async () => {
    await start({});
    const answers = Array.from({ length: 20 }, () => fixture.send('/'));
    await waitUntil(() => fixture.gateway.demand('ep1') === 20);
    assert.equal(fixture.pool.watchers, 1);
    await fixture.worker('late', (_request, response) => response.end('at last'));
    for (const { text } of await Promise.all(answers)) assert.equal(text, 'at last');
    await waitUntil(() => fixture.pool.watchers === 0);
  });

  test('a request that waited too long gets 503 with Retry-After', async () => {
    await start({ limits: { waitMs: 30 } });
    const { status, text, headers } = await fixture.send('/', { method: 'POST' }, 'body');
    assert.deepEqual([status, text, headers['retry-after']], [503, '{"error":"no workers available"}', '5']);
    assert.equal(fixture.gateway.demand('ep1'), 0);
    assert.equal(fixture.pool.watchers, 0);
  });

  test('a request beyond the waiting limit is refused at once', async () => {
    await start({ limits: { maxWaiting: 3 } });
    const waiting = Array.from({ length: 3 }, () => fixture.send('/'));
    await waitUntil(() => fixture.gateway.demand('ep1') === 3);
    const { status, text } = await fixture.send('/');
    assert.deepEqual([status, text], [503, '{"error":"no workers available"}']);
    await fixture.worker('a', (_request, response) => response.end('ok'));
    for (const { status: served } of await Promise.all(waiting)) assert.equal(served, 200);
  });

  test('a client that disconnects while waiting frees its place, and no worker is called', async () => {
    await start({});
    const outgoing = fixture.open('/left').on('error', () => undefined);
    outgoing.end();
    await waitUntil(() => fixture.gateway.demand('ep1') === 1);
    outgoing.destroy();
    await waitUntil(() => fixture.gateway.demand('ep1') === 0);
    const paths: string[] = [];
    await fixture.worker('a', (request, response) => {
      paths.push(request.url ?? '');
      response.end();
    });
    await fixture.send('/stayed');
    assert.deepEqual(paths, ['/stayed']);
  });

  test('the pool is notified of every change in demand and every use of a worker', async () => {
    await start({ endpoint: { scalerValue: 1 } });
    await fixture.worker('a', holding('a'));
    const answers: Promise<ReceivedResponse>[] = [];
    for (let number = 1; number <= 3; number += 1) {
      answers.push(fixture.send('/'));
      await waitUntil(() => fixture.gateway.demand('ep1') === number);
    }
    assert.deepEqual(fixture.pool.demands, [1, 2, 3]);
    for (let count = 0; count < 3; count += 1) {
      await waitUntil(() => held.length === 1);
      answerAll();
    }
    await Promise.all(answers);
    assert.deepEqual(fixture.pool.demands, [1, 2, 3, 2, 1, 0]);
    assert.deepEqual(
      fixture.pool.touches,
      Array.from({ length: 6 }, () => 'a'),
    );
  });

  test('a drained worker finishes its requests and gets no new ones', async () => {
    await start({});
    await fixture.worker('a', holding('a'));
    const first = fixture.send('/first');
    await waitUntil(() => held.length === 1);
    fixture.pool.remove('a');
    await fixture.worker('b', (_request, response) => response.end('b'));
    assert.equal((await fixture.send('/')).text, 'b');
    answerAll();
    assert.equal((await first).text, '/first');
  });

  test('waiting requests keep their order when a worker dies', async () => {
    await start({ endpoint: { scalerValue: 1 } });
    const dying = await fixture.worker('dying', holding('dying'));
    const answers: Promise<ReceivedResponse>[] = [];
    for (let number = 0; number < 6; number += 1) {
      answers.push(fixture.send(`/${number}`));
      await waitUntil(() => fixture.gateway.demand('ep1') === number + 1);
    }
    await waitUntil(() => held.length === 1);
    held = [];
    await stopWorker(dying);
    assert.equal((await (answers[0] as Promise<ReceivedResponse>)).status, 502);
    // The pool does not know yet: the next one goes there, and comes back.
    await waitUntil(() => fixture.pool.touches.length === 4 && fixture.gateway.demand('ep1') === 5);
    assert.deepEqual(loads(), {});
    fixture.pool.remove('dying');
    await fixture.worker('next', holding('next'));
    for (let number = 1; number < 6; number += 1) {
      await waitUntil(() => held.length === 1);
      assert.equal(held[0]?.path, `/${number}`);
      answerAll();
      assert.equal((await (answers[number] as Promise<ReceivedResponse>)).status, 200);
    }
  });

  test('a worker that could not be reached is asked again after a while', async () => {
    await start({ limits: { unreachableMs: 10 } });
    const late = await fixture.worker('late', (_request, response) => response.end('here now'));
    await stopWorker(late);
    const answer = fixture.send('/');
    await waitUntil(() => fixture.pool.touches.length === 2);
    late.server.listen(late.port, '127.0.0.1');
    assert.equal((await answer).text, 'here now');
  });

  test('a new request count applies at once, also to waiting requests', async () => {
    await start({ endpoint: { scalerValue: 1 } });
    await fixture.worker('a', holding('a'));
    const answers = Array.from({ length: 4 }, () => fixture.send('/'));
    await waitUntil(() => fixture.gateway.demand('ep1') === 4 && held.length === 1);
    fixture.change({ scalerValue: 3 });
    await waitUntil(() => held.length === 3);
    assert.deepEqual(loads(), { a: 3 });
    answerAll();
    await waitUntil(() => held.length === 1);
    answerAll();
    for (const { status } of await Promise.all(answers)) assert.equal(status, 200);
  });

  test('waiting requests get 404 when the endpoint is removed', async () => {
    await start({ endpoint: { scalerValue: 1 } });
    await fixture.worker('a', holding('a'));
    const first = fixture.send('/');
    await waitUntil(() => held.length === 1);
    const waiting = [fixture.send('/'), fixture.send('/', { headers: { 'X-Runpod-Worker-Id': 'strict a' } })];
    await waitUntil(() => fixture.gateway.demand('ep1') === 3);
    fixture.change('removed');
    for (const { status, text } of await Promise.all(waiting)) {
      assert.equal(status, 404);
      assert.match(text, /endpoint/);
    }
    answerAll();
    assert.equal((await first).status, 200);
  });

  test('waiting requests end when the server stops', async () => {
    await start({});
    const answer = fixture.send('/');
    await waitUntil(() => fixture.gateway.demand('ep1') === 1);
    fixture.gateway.close();
    assert.equal((await answer).status, 503);
    assert.equal((await fixture.send('/')).status, 503);
  });

  describe('affinity', () => {
    const affinity = (value: string): { headers: Record<string, string> } => ({
      headers: { 'X-Runpod-Worker-Id': value },
    });
    const named = async (value: string): Promise<[number, unknown, unknown]> => {
      const { status, headers, text } = await fixture.send('/', affinity(value));
      return [
        status,
        headers['x-runpod-worker-id'],
        text === '' ? undefined : (JSON.parse(text) as { reason?: string }).reason,
      ];
    };

    test('a plain id is preferred, however loaded, and another taken where it is full or gone', async () => {
      await start({ endpoint: { scalerValue: 3 } });
      await fixture.worker('a', holding('a'));
      await fixture.worker('b', (_request, response) => response.end());
      const answers = Array.from({ length: 3 }, () => fixture.send('/', affinity('a')));
      await waitUntil(() => held.length === 3);
      assert.deepEqual(await named('a'), [200, 'b', undefined]);
      assert.deepEqual(await named('gone'), [200, 'b', undefined]);
      answerAll();
      await Promise.all(answers);
    });

    test('strict takes no other: it waits for its worker, and is 404 where that is gone', async () => {
      await start({ endpoint: { scalerValue: 1 } });
      await fixture.worker('a', holding('a'));
      await fixture.worker('b', (_request, response) => response.end());
      const first = fixture.send('/1', affinity('strict a'));
      await waitUntil(() => held.length === 1);
      const second = fixture.send('/2', affinity('Strict  a'));
      await waitUntil(() => fixture.gateway.demand('ep1') === 2);
      assert.deepEqual(await named('b'), [200, 'b', undefined]);
      answerAll();
      await waitUntil(() => held.length === 1);
      answerAll();
      assert.deepEqual([(await first).text, (await second).text], ['/1', '/2']);
      const gone = await fixture.send('/', affinity('strict c'));
      assert.equal(gone.status, 404);
      assert.equal((JSON.parse(gone.text) as { reason: string }).reason, 'affinity_worker_gone');
      assert.deepEqual(await named('strict-resume c'), [404, undefined, 'affinity_worker_gone']);
    });

    test('strict whose worker is not free in time is 400, and whose worker leaves meanwhile 404', async () => {
      await start({ endpoint: { scalerValue: 1 }, limits: { strictWaitMs: 30 } });
      await fixture.worker('a', holding('a'));
      const first = fixture.send('/');
      await waitUntil(() => held.length === 1);
      assert.deepEqual(await named('strict a'), [400, undefined, 'worker_timeout']);
      answerAll();
      await first;
      await fixture.close();

      await start({ endpoint: { scalerValue: 1 } });
      await fixture.worker('a', holding('a'));
      const busy = fixture.send('/');
      await waitUntil(() => held.length === 1);
      const left = named('strict a');
      await waitUntil(() => fixture.gateway.demand('ep1') === 2);
      fixture.pool.remove('a');
      assert.deepEqual(await left, [404, undefined, 'affinity_worker_gone']);
      answerAll();
      await busy;
    });

    test('strict waits for a worker that is there and not ready yet', async () => {
      await start({});
      const late = await fixture.worker('late', (_request, response) => response.end(), false);
      fixture.pool.starting.add('late');
      const answer = named('strict late');
      await waitUntil(() => fixture.gateway.demand('ep1') === 1);
      fixture.pool.add(late);
      assert.deepEqual(await answer, [200, 'late', undefined]);
    });

    test('strict-resume has a worker started again', async () => {
      await start({});
      fixture.pool.stopped.set(
        'old',
        await fixture.worker('old', (_request, response) => response.end(), false),
      );
      assert.deepEqual(await named('strict old'), [404, undefined, 'affinity_worker_gone']);
      assert.deepEqual(await named('strict-resume old'), [200, 'old', undefined]);
    });

    test('strict-resume ends when the restarted worker ends before it was ready', async () => {
      await start({});
      fixture.pool.stopped.set(
        'old',
        await fixture.worker('old', (_request, response) => response.end(), false),
      );
      fixture.pool.resumesReady = false;
      assert.deepEqual(await named('strict-resume old'), [404, undefined, 'affinity_worker_gone']);
    });

    test('strict: a request waits for its own worker, goes to no other, and is 404 once that is gone', async () => {
      await start({});
      await stopWorker(await fixture.worker('dead', holding('dead')));
      await fixture.worker('b', (_request, response) => response.end());
      const waiting = named('strict dead');
      await waitUntil(() => fixture.pool.touches.length === 2 && fixture.gateway.demand('ep1') === 1);
      assert.deepEqual(await named('dead'), [200, 'b', undefined]);
      fixture.pool.remove('dead');
      assert.deepEqual(await waiting, [404, undefined, 'affinity_worker_gone']);
    });
  });
});
