import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, createServer, request as ask } from 'node:http';
import type { IncomingMessage, RequestOptions, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import { JobQueue } from '../../queue/job-queue.ts';
import { JobReaperLoop } from '../../queue/job-reaper-loop.ts';
import { deliveryOf } from '../../queue/webhooks/webhook-delivery.ts';
import { EndpointCache } from '../../resources/endpoints/endpoint-cache.ts';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import { Authenticator } from '../../auth/authenticator.ts';
import { ApiKeys } from '../../resources/keys/api-keys.ts';
import type { JobStatus, TakenJob } from '../../domain/job-records.ts';
import type { Endpoint } from '../../domain/records.ts';
import { systemClock } from '../../support/clock.ts';
import { createLog } from '../../support/log.ts';
import { parseJobUrl } from '../jobs/job-url.ts';
import { JobRateLimits } from '../jobs/job-rate-limits.ts';
import { OpenAiRoutes } from './openai.routes.ts';
import { EventBus } from '../../support/event-bus.ts';
import { OpenAccesses } from '../../auth/open-access.ts';

const WORKER = 'w1';
const log = createLog({ level: 'silent', format: 'json' });

interface Input {
  openai_route: string;
  openai_input?: Record<string, unknown>;
}

/** What a test's handler may do with its job. */
interface Hands {
  input: Input;
  /** The request as it was stored. */
  text: string;
  yields(...values: unknown[]): Promise<void>;
  returns(output: unknown): Promise<void>;
  fails(error: unknown): Promise<void>;
}

interface Answer {
  status: number;
  headers: IncomingMessage['headers'];
  text: string;
}

describe('the OpenAI interface of a queue endpoint', () => {
  let context: ServiceContext;
  let queue: JobQueue;
  let sweeper: JobReaperLoop;
  let routes: OpenAiRoutes;
  let server: Server;
  let endpoint: Endpoint;
  let key: string;
  let readerKey: string;
  let strangersKey: string;
  const agent = new Agent({ keepAlive: true });

  before(async () => {
    context = await createServiceContext();
    const real = { ...context, clock: systemClock };
    const authenticator = new Authenticator(real);
    const keys = new ApiKeys(real);
    const ann = await context.account('ann');
    ({ key } = await keys.create(ann, { name: 'k', access: 'all' }));
    ({ key: readerKey } = await keys.create(ann, { name: 'k', access: 'read-only' }));
    ({ key: strangersKey } = await keys.create(await context.account('bob'), { name: 'k', access: 'all' }));
    endpoint = { ...sampleEndpoint, id: 'ep1', accountId: ann.accountId, maxRetries: 1 };
    const endpoints = new EndpointCache(
      {
        findInAnyAccount: async (id) =>
          id === endpoint.id
            ? endpoint
            : id === 'lb'
              ? { ...endpoint, id: 'lb', type: 'LOAD_BALANCER' }
              : undefined,
      },
      systemClock,
      0,
    );
    queue = new JobQueue({
      store: context.store.jobs,
      wakeups: context.store.wakeups,
      clock: systemClock,
      log,
      deliveryOf: (job, payloads) => deliveryOf(job, payloads, 'd', 0),
      events: new EventBus(),
    });
    sweeper = new JobReaperLoop(queue.reaper, log);
    sweeper.start();
    routes = new OpenAiRoutes({
      queue,
      endpoints,
      authenticator: authenticator,
      openAccesses: new OpenAccesses(context),
      rateLimits: new JobRateLimits(systemClock),
      log,
    });
    server = createServer((request, response) => {
      const address = parseJobUrl(request.url ?? '');
      if (address === undefined || !routes.handles(address.operation)) response.writeHead(404).end();
      else void routes.serve(request, response, address);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(async () => {
    agent.destroy();
    server.close();
    await sweeper.close();
    await context.close();
  });
  afterEach(() => {
    endpoint.executionTimeout = 600_000;
  });

  const open = (path: string, { headers, ...options }: RequestOptions = {}): ReturnType<typeof ask> =>
    ask({
      host: '127.0.0.1',
      port: (server.address() as AddressInfo).port,
      agent,
      path: `/v2/ep1/openai${path}`,
      ...options,
      headers: { authorization: `Bearer ${key}`, ...(headers as Record<string, string>) },
    });
  const send = async (path: string, body?: unknown, options: RequestOptions = {}): Promise<Answer> => {
    const outgoing = open(path, { method: body === undefined ? 'GET' : 'POST', ...options });
    outgoing.end(body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body));
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    return { status: response.statusCode ?? 0, headers: response.headers, text: await textOf(response) };
  };
  const textOf = async (response: IncomingMessage): Promise<string> => {
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += String(chunk);
    return text;
  };
  const never = new AbortController().signal;
  const take = async (workerId = WORKER): Promise<TakenJob> => {
    const [taken] = await queue.take('ep1', workerId, 1, 20_000, never);
    assert.ok(taken !== undefined);
    return taken;
  };
  const handsOn = ({ job, request }: TakenJob, workerId = WORKER): Hands => {
    const holder = { workerId, lease: job.lease ?? undefined };
    return {
      input: (JSON.parse(request) as { input: Input }).input,
      text: request,
      yields: (...values) =>
        queue.streams.append(
          'ep1',
          job.seq,
          holder,
          values.map((output) => JSON.stringify({ output })),
        ),
      returns: async (output) =>
        void (await queue.finish('ep1', job.seq, holder, {
          output: output === undefined ? null : JSON.stringify(output),
          error: null,
        })),
      fails: async (error) =>
        void (await queue.finish('ep1', job.seq, holder, { output: null, error: JSON.stringify(error) })),
    };
  };
  /** Serves the next job by hand. */
  const serve = async (handler: (hands: Hands) => Promise<void>): Promise<TakenJob> => {
    const taken = await take();
    await handler(handsOn(taken));
    return taken;
  };
  const statusOf = async ({ job }: TakenJob): Promise<JobStatus | undefined> =>
    (await queue.find('ep1', job.seq))?.job.status;
  const ended = async ({ job }: TakenJob): Promise<JobStatus | undefined> =>
    (await queue.waitForEnd('ep1', job.seq, 20_000, never))?.job.status;
  const errorOf = ({ text }: Answer): { message: string; type: string; code: string } =>
    (JSON.parse(text) as { error: { message: string; type: string; code: string } }).error;

  test('a call becomes a job with its route and its body, and the answer is taken out of its list', async () => {
    const answer = send('/v1/chat/completions', '{"model": "m", "seed": 12345678901234567890}');
    await serve(async ({ input, text, returns }) => {
      assert.equal(input.openai_route, '/v1/chat/completions');
      assert.equal(
        text,
        '{"input":{"openai_route":"/v1/chat/completions","openai_input":{"model": "m", "seed": 12345678901234567890}}}',
      );
      await returns([{ id: 'chatcmpl-1', choices: [] }]);
    });
    const { status, text, headers } = await answer;
    assert.deepEqual([status, text], [200, '{"id":"chatcmpl-1","choices":[]}']);
    assert.match(headers['content-type'] ?? '', /^application\/json/);
  });

  test('a GET has no body in its job', async () => {
    const answer = send('/v1/models');
    await serve(async ({ text, returns }) => {
      assert.equal(text, '{"input":{"openai_route":"/v1/models"}}');
      await returns({ object: 'list', data: [] });
    });
    assert.equal((await answer).text, '{"object":"list","data":[]}');
  });

  test('a handler that keeps no list of what it yields is answered with what it yielded', async () => {
    const answer = send('/v1/completions', {});
    await serve(async ({ yields, returns }) => {
      await yields({ id: 'cmpl-1' });
      await returns([]);
    });
    assert.equal((await answer).text, '{"id":"cmpl-1"}');
  });

  test('a stream comes as the handler writes it, piece by piece, cut anywhere', async () => {
    const outgoing = open('/v1/chat/completions', { method: 'POST' });
    outgoing.end(JSON.stringify({ stream: true }));
    const taken = await take();
    const { yields, returns } = handsOn(taken);
    await yields('data: {"n"');
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    assert.match(response.headers['content-type'] ?? '', /^text\/event-stream/);
    assert.equal(String(((await once(response, 'data')) as [Buffer])[0]), 'data: {"n"');
    const rest = textOf(response);
    await yields(':1}\n\n');
    await yields({ n: 2 });
    await yields('data: [DONE]\n\n');
    await returns(['not', 'again']);
    assert.equal(await rest, ':1}\n\ndata: {"n":2}\n\ndata: [DONE]\n\n');
  });

  test('10,000 chunks arrive whole and in order', async () => {
    const answer = send('/v1/chat/completions', { stream: true });
    await serve(async ({ yields, returns }) => {
      for (let number = 0; number < 10_000; number += 250)
        await yields(...Array.from({ length: 250 }, (_, index) => `data: ${number + index}\n\n`));
      await returns([]);
    });
    assert.equal(
      (await answer).text,
      Array.from({ length: 10_000 }, (_, number) => `data: ${number}\n\n`).join(''),
    );
  });

  test('a handler that does not stream answers a stream all the same', async () => {
    const answer = send('/v1/completions', { stream: true });
    await serve(({ returns }) => returns(['data: a\n\n', { b: 1 }]));
    assert.equal((await answer).text, 'data: a\n\ndata: {"b":1}\n\n');
  });

  test("a handler's error is an error of the interface, with 500", async () => {
    for (const stream of [false, true]) {
      const answer = send('/v1/completions', { stream });
      await serve(({ fails }) =>
        fails(JSON.stringify({ error_type: "<class 'ValueError'>", error_message: 'no such model' })),
      );
      const failed = await answer;
      assert.equal(failed.status, 500);
      assert.deepEqual(errorOf(failed), {
        message: 'no such model',
        type: 'server_error',
        code: 'job_failed',
      });
    }
  });

  test('one in the middle of a stream is its last event', async () => {
    const answer = send('/v1/completions', { stream: true });
    await serve(async ({ yields, fails }) => {
      await yields('data: 1\n\n');
      await fails('out of memory');
    });
    const { status, text } = await answer;
    assert.equal(status, 200);
    assert.equal(
      text,
      'data: 1\n\ndata: {"error":{"message":"out of memory","type":"server_error","code":"job_failed"}}\n\n',
    );
  });

  test('who hangs up has cancelled the job: waiting, running or streaming', async () => {
    const waiting = open('/v1/completions', { method: 'POST' }).on('error', () => undefined);
    waiting.end('{}');
    const running = open('/v1/completions', { method: 'POST' }).on('error', () => undefined);
    running.end('{}');
    const first = await take();
    const second = await take();
    assert.equal(await statusOf(first), 'IN_PROGRESS');
    waiting.destroy();
    running.destroy();
    assert.deepEqual([await ended(first), await ended(second)], ['CANCELLED', 'CANCELLED']);
    assert.deepEqual(
      new Set(await queue.waitForCancellations('ep1', WORKER, 1_000, never)),
      new Set([first.job.id, second.job.id]),
    );

    const streaming = open('/v1/completions', { method: 'POST' }).on('error', () => undefined);
    streaming.end('{"stream":true}');
    const third = await take();
    await handsOn(third).yields('data: 1\n\n');
    const [response] = (await once(streaming, 'response')) as [IncomingMessage];
    response.on('error', () => undefined);
    streaming.destroy();
    assert.equal(await ended(third), 'CANCELLED');
  });

  test('a worker lost before its first output is replaced; one lost later ends the stream', async () => {
    const replaced = send('/v1/completions', { stream: true });
    await take('lost');
    await queue.reaper.workerGone('ep1', 'lost', 'gone');
    await serve(async ({ yields, returns }) => {
      await yields('data: second\n\n');
      await returns([]);
    });
    assert.equal((await replaced).text, 'data: second\n\n');

    const outgoing = open('/v1/completions', { method: 'POST' });
    outgoing.end('{"stream":true}');
    const taken = await take('lost');
    await handsOn(taken, 'lost').yields('data: first\n\n');
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    const text = textOf(response);
    await queue.reaper.workerGone('ep1', 'lost', 'gone');
    assert.match(await text, /^data: first\n\ndata: {"error":{.*"code":"worker_lost"}}\n\n$/);
    assert.equal(await ended(taken), 'CANCELLED');
  });

  test('a call that no worker takes in time is given up', async () => {
    for (const stream of [false, true]) {
      endpoint.executionTimeout = 30;
      const failed = await send('/v1/completions', { stream });
      assert.equal(failed.status, 504);
      assert.equal(errorOf(failed).code, 'timeout');
    }
    assert.equal((await queue.counts('ep1')).inQueue, 0);
  });

  test('a job that runs too long is 504, one that was purged 404, one that someone cancelled 500', async () => {
    endpoint.executionTimeout = 500;
    const taking = take();
    const slow = send('/v1/completions', {});
    await taking;
    assert.deepEqual([(await slow).status, errorOf(await slow).code], [504, 'job_timed_out']);
    endpoint.executionTimeout = 600_000;
    const purged = send('/v1/completions', {});
    while ((await queue.purge('ep1')) === 0) continue;
    assert.deepEqual([(await purged).status, errorOf(await purged).code], [404, 'job_removed']);
    const cancelled = send('/v1/completions', {});
    const taken = await take();
    await queue.cancel('ep1', taken.job.seq);
    assert.deepEqual([(await cancelled).status, errorOf(await cancelled).code], [500, 'job_cancelled']);
  });

  test('mistakes are answered in the words of the interface', async () => {
    const cases: [Promise<Answer>, number, string][] = [
      [send('/v1/models', undefined, { headers: { authorization: 'wrong' } }), 401, 'authentication_error'],
      [send('/v1/models', undefined, { headers: { authorization: readerKey } }), 403, 'permission_error'],
      [send('/v1/models', undefined, { headers: { authorization: strangersKey } }), 404, 'not_found_error'],
      [send('', undefined, { path: '/v2/nothing/openai/v1/models' }), 404, 'not_found_error'],
      [send('', undefined, { path: '/v2/lb/openai/v1/models' }), 400, 'invalid_request_error'],
      [send(''), 404, 'not_found_error'],
      [send('/v1/models', undefined, { method: 'DELETE' }), 405, 'invalid_request_error'],
      [send('/v1/completions', '{'), 400, 'invalid_request_error'],
      [send('/v1/completions', ''), 400, 'invalid_request_error'],
      [send('/v1/completions', '[]'), 400, 'invalid_request_error'],
      [send('/v1/completions', `"${'x'.repeat(20 * 1024 * 1024)}"`), 413, 'invalid_request_error'],
    ];
    for (const [answer, status, type] of cases) {
      const failed = await answer;
      assert.equal(failed.status, status, failed.text);
      assert.equal(errorOf(failed).type, type);
    }
  });

  test('waiting requests end when the server stops', async () => {
    const waiting = send('/v1/completions', {});
    const outgoing = open('/v1/completions', { method: 'POST' });
    outgoing.end('{"stream":true}');
    const jobs = [await take(), await take()];
    const streaming = jobs.find(({ request }) => request.includes('stream'));
    await handsOn(streaming as TakenJob).yields('data: 1\n\n');
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    const text = textOf(response);
    routes.close();
    assert.deepEqual([(await waiting).status, errorOf(await waiting).code], [503, 'server_stops']);
    assert.match(await text, /^data: 1\n\ndata: {"error":{.*"code":"server_stops"}}\n\n$/);
    for (const job of jobs) assert.equal(await ended(job), 'CANCELLED');
  });
});
