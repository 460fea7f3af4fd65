import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { startOtlpReceiver } from '../packages/testing/src/otlp-receiver.ts';
import type { OtlpReceiver, ReceivedSpan } from '../packages/testing/src/otlp-receiver.ts';
import { createRunningPod } from '../packages/testing/src/pod-client.ts';
import { startPython, workerEnvironment } from '../packages/testing/src/python-process.ts';
import { acceleratedPythonSdk, berthPythonSdk } from '../packages/testing/src/python-sdks.ts';
import { createQueueEndpoint, queueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { createTestDatabase, DATABASES } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { SHORT_TIMINGS } from '../packages/testing/src/worker-sdk/short-timings.ts';
import { WorkerRuntime } from '../packages/worker/src/worker-runtime.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const CALLER_SPAN = 'b7ad6b7169203331';
const TRACEPARENT = `00-${TRACE_ID}-${CALLER_SPAN}-01`;
/** Answers with the headers that it got. */
const ECHO_SERVER =
  `require('node:http').createServer((q, s) => ` +
  's.end(JSON.stringify(q.headers))).listen(process.env.BERTH_PORT_8000)';
const PYTHON_WORKER = `import importlib, os
sdk = importlib.import_module(os.environ["WORKER_SDK"])
sdk.serverless.start({"handler": lambda job: job.get("traceparent")})
`;

for (const kind of DATABASES) {
  describe(`traces, on ${kind}`, () => {
    let database: TestDatabase;
    let server: ServerProcess;
    let receiver: OtlpReceiver;
    let hooks: Server;
    const webhooks: IncomingHttpHeaders[] = [];
    const start = async (): Promise<void> => {
      server = await startServerProcess(database, {
        BERTH_RATE_LIMITS: 'off',
        BERTH_WEBHOOKS_ALLOW_PRIVATE: 'true',
        BERTH_LOG_LEVEL: 'debug',
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
        OTEL_EXPORTER_OTLP_HEADERS: 'x-team=a%20b',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
        OTEL_BSP_SCHEDULE_DELAY: '50',
      });
    };
    before(async () => {
      receiver = await startOtlpReceiver();
      hooks = createServer((request, response) => {
        webhooks.push(request.headers);
        request.resume();
        response.end();
      });
      await once(hooks.listen(0, '127.0.0.1'), 'listening');
      database = await createTestDatabase(kind);
      await start();
    });
    after(async () => {
      await server.stop();
      await database.drop();
      receiver.close();
      hooks.close();
      hooks.closeAllConnections();
      assert.deepEqual(receiver.problems, []);
    });
    /** The span of this name, once it has arrived. */
    const span = (traceId: string, name: string): Promise<ReceivedSpan> =>
      waitFor(`the span ${name}`, () =>
        receiver.spans.find((one) => one.traceId === traceId && one.name === name),
      );

    test('a job is traced from its caller to its webhook, and its handler gets the context', async () => {
      const endpoint = await createQueueEndpoint(server.url, server.key);
      const given: (string | undefined)[] = [];
      const worker = new WorkerRuntime(
        (job) => {
          given.push(job.traceparent);
          return 'done';
        },
        {
          env: workerEnvironment({
            url: server.url,
            endpointId: endpoint.id,
            workerId: 'traced',
            key: server.key,
          }),
        },
        { timings: SHORT_TIMINGS, pingThread: false, writeLogLine: () => undefined },
      );
      const webhook = `http://127.0.0.1:${(hooks.address() as AddressInfo).port}/`;
      const { body } = await endpoint.call(
        'POST',
        'runsync?wait=60000',
        { input: 1, webhook },
        { traceparent: TRACEPARENT },
      );
      assert.equal(body.status, 'COMPLETED');
      await worker.stop();

      const submit = await span(TRACE_ID, 'job submit');
      assert.equal(submit.parentSpanId, CALLER_SPAN);
      assert.equal(submit.attributes['berth.endpoint_id'], endpoint.id);
      const run = await span(TRACE_ID, 'job run');
      const wait = await span(TRACE_ID, 'job wait');
      for (const below of [
        wait,
        await span(TRACE_ID, 'job dispatch'),
        run,
        await span(TRACE_ID, 'webhook'),
      ]) {
        assert.equal(below.parentSpanId, submit.spanId, below.name);
        assert.equal(below.attributes['berth.job_id'], body.id, below.name);
        assert.equal(below.isError, false, below.name);
      }
      assert.ok(wait.end <= run.end && wait.start <= run.start);
      assert.equal(run.attributes['berth.worker_id'], 'traced');
      assert.deepEqual(given, [`00-${TRACE_ID}-${run.spanId}-01`]);
      const hook = await waitFor('the webhook', () => webhooks[0]);
      assert.equal(hook['traceparent'], `00-${TRACE_ID}-${(await span(TRACE_ID, 'webhook')).spanId}-01`);
      assert.equal(receiver.headers[0]?.['x-team'], 'a b');
      assert.partialDeepStrictEqual(receiver.resources[0], {
        'service.name': 'berth',
        'deployment.environment.name': 'test',
      });
      // The log of the request names the trace; the request that clients see does not.
      assert.ok(
        server
          .log()
          .split('\n')
          .some((line) => line.includes('runsync') && line.includes(TRACE_ID)),
        'a log line with the trace',
      );
      const { body: listed } = await endpoint.call<{ requests: { input: unknown }[] }>('GET', 'requests');
      assert.deepEqual(listed.requests[0]?.input, 1);
    });

    for (const [name, sdk] of [
      ['berth-worker for Python', berthPythonSdk()],
      ['the public SDK, accelerated', acceleratedPythonSdk()],
    ] as const)
      test(`handlers of ${name} get the context`, { skip: typeof sdk === 'string' && sdk }, async () => {
        assert.ok(typeof sdk !== 'string');
        const endpoint = await createQueueEndpoint(server.url, server.key);
        const target = { url: server.url, endpointId: endpoint.id, workerId: 'python', key: server.key };
        const worker = startPython({ path: sdk.python }, PYTHON_WORKER, {
          ...sdk.env,
          ...workerEnvironment(target),
        });
        try {
          const { body } = await endpoint.call(
            'POST',
            'runsync?wait=60000',
            { input: { n: 1 } },
            { traceparent: TRACEPARENT },
          );
          assert.match(String(body.output), new RegExp(`^00-${TRACE_ID}-[0-9a-f]{16}-01$`), worker.output());
        } finally {
          await worker.kill();
        }
      });

    test('the trace goes on after a crash, and a failed job is an error', async () => {
      const endpoint = await createQueueEndpoint(server.url, server.key);
      const id = await endpoint.run();
      const worker = endpoint.worker();
      const job = await worker.take();
      const [, traceId = '', runSpan = ''] = String(job['traceparent']).split('-');
      await span(traceId, 'job submit');
      await server.kill();
      await start();
      const after = queueEndpointClient(server.client(), endpoint.id, server.key);
      await after.worker(worker.workerId).done(id, { error: 'no' });
      const run = await span(traceId, 'job run');
      assert.equal(run.spanId, runSpan);
      assert.equal(run.isError, true);
    });

    test('what is not recorded by the caller is passed on and not exported', async () => {
      const endpoint = await createQueueEndpoint(server.url, server.key);
      const other = '1'.repeat(32);
      await endpoint.call('POST', 'run', { input: 1 }, { traceparent: `00-${other}-${CALLER_SPAN}-00` });
      const worker = endpoint.worker();
      const job = await worker.take();
      assert.match(String(job['traceparent']), new RegExp(`^00-${other}-[0-9a-f]{16}-00$`));
      await worker.done(job.id, { output: 1 });
      // A later one has arrived, and this one not.
      await endpoint.call('POST', 'run', { input: 1 }, { traceparent: TRACEPARENT.replace('0af7', '0af8') });
      await span(TRACE_ID.replace('0af7', '0af8'), 'job submit');
      assert.deepEqual(
        receiver.spans.filter(({ traceId }) => traceId === other),
        [],
      );
    });

    test('requests through the gateway carry the context on', async () => {
      const { id } = await createRunningPod(server.client(), {
        cmd: ['node', '-e', ECHO_SERVER],
        ports: ['8000/http'],
      });
      const traceId = '2'.repeat(32);
      const headers = await waitFor('the pod answers', async () => {
        const answer = await server
          .client()
          .call<Record<string, string>>('GET', `/proxy/${id}-8000/`, undefined, {
            traceparent: `00-${traceId}-${CALLER_SPAN}-01`,
          });
        return answer.status === 200 && answer.body;
      });
      const forwarded = await waitFor('the span of the request that was answered', () =>
        receiver.spans.find((one) => headers['traceparent'] === `00-${traceId}-${one.spanId}-01`),
      );
      assert.equal(forwarded.name, 'gateway request');
      assert.equal(forwarded.parentSpanId, CALLER_SPAN);
      assert.equal(forwarded.attributes['http.response.status_code'], 200);
      await server.client().call('DELETE', `/v2/pods/${id}`);
    });
  });
}
