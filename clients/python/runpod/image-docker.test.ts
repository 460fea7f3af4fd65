import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { withDocker } from '../../../packages/testing/src/with-docker.ts';
import { queueEndpointClient } from '../../../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../../../packages/testing/src/queue-endpoint-client.ts';
import { listWorkers } from '../../../packages/testing/src/deploy-handler.ts';
import { clearedServerFixture } from '../../../packages/testing/src/cleared-server-fixture.ts';
import { makePythonImage } from '../../support/python-image.ts';

const PATIENCE_MS = 90_000;

/** As one writes it for the hosted service; nothing in it knows of Berth. */
const HANDLER = `
import asyncio
import os
import runpod

async def handler(job):
    wanted = job["input"]
    do = wanted["do"]
    if do == "words":
        for word in wanted["text"].split():
            yield word
    elif do == "raise":
        raise ValueError("no such thing")
    elif do == "sleep":
        runpod.serverless.progress_update(job, "asleep")
        await asyncio.sleep(wanted["seconds"])
        yield "awake"
    else:
        yield {"worker": os.environ["RUNPOD_POD_ID"], "model": os.environ["MODEL"], "version": runpod.__version__}

runpod.serverless.start({"handler": handler, "return_aggregate_stream": True, "concurrency_modifier": lambda current: 2})
`;
import { waitFor, waitUntilPasses } from '../../../packages/testing/src/wait-for.ts';

await withDocker((host) => {
  describe('a worker image with the Python SDK, on Docker', { concurrency: false }, () => {
    const fixture = clearedServerFixture({ BERTH_DOCKER: host });
    let image: Awaited<ReturnType<typeof makePythonImage>>;
    let jobs: QueueEndpointClient;
    before(async () => {
      image = await makePythonImage(host, `localhost/berth-python-worker:p${process.pid}`, 'runpod', HANDLER);
      await waitFor('DOCKER-1 is there', async () =>
        (await fixture.operator.call('GET', '/v2/catalog/datacenters')).text.includes('DOCKER-1'),
      );
      const made = await fixture.operator.call<{ id: string }>('POST', '/v2/serverless', {
        name: 'python',
        type: 'QUEUE',
        image: image.name,
        env: { MODEL: 'small' },
        cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
        scaling: { type: 'QUEUE_DELAY', queueDelay: 1 },
        workers: { min: 0, max: 1, idleTimeout: 2 },
      });
      assert.equal(made.status, 201, made.text);
      jobs = queueEndpointClient(fixture.server.client(), made.body.id, fixture.server.key);
    });
    after(() => image.remove());

    test('is started for the first job, as it is, and serves it', async () => {
      const { body } = await jobs.runSync({ do: 'tell' }, PATIENCE_MS);
      assert.deepEqual(
        [body.status, body.output],
        ['COMPLETED', [{ worker: body.workerId, model: 'small', version: '1.12.0' }]],
        JSON.stringify(body),
      );
      const [worker] = await listWorkers(fixture.operator, jobs.id);
      assert.equal(worker?.id, body.workerId);
    });

    test('streams, tells its progress and its failures', async () => {
      const streamed = await jobs.run({ do: 'words', text: 'one two three' });
      assert.deepEqual((await jobs.waitForEnd(streamed)).output, ['one', 'two', 'three']);
      assert.deepEqual(
        (await jobs.call<{ output: string }[]>('GET', `stream/${streamed}`)).body.map(({ output }) => output),
        ['one', 'two', 'three'],
      );
      const slow = await jobs.run({ do: 'sleep', seconds: 3 });
      await waitUntilPasses(
        async () => assert.equal((await jobs.status(slow)).output, 'asleep'),
        PATIENCE_MS,
      );
      assert.deepEqual((await jobs.waitForEnd(slow)).output, ['awake']);
      const { body } = await jobs.runSync({ do: 'raise' }, PATIENCE_MS);
      assert.deepEqual(
        [body.status, /no such thing/.test(String(body.error))],
        ['FAILED', true],
        JSON.stringify(body),
      );
    });

    test('is told of a cancelled job, and is ended when it has nothing to do', async () => {
      const endless = await jobs.run({ do: 'sleep', seconds: 600 });
      await waitUntilPasses(
        async () => assert.equal((await jobs.status(endless)).status, 'IN_PROGRESS'),
        PATIENCE_MS,
      );
      await jobs.call('POST', `cancel/${endless}`);
      assert.equal((await jobs.waitForEnd(endless)).status, 'CANCELLED');
      await waitFor(
        'the idle worker is gone',
        async () => (await listWorkers(fixture.operator, jobs.id)).length === 0,
        30_000,
      );
      // It comes again for the next job.
      assert.equal((await jobs.runSync({ do: 'tell' }, PATIENCE_MS)).body.status, 'COMPLETED');
    });
  });
});
