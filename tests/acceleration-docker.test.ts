import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DockerClient } from '../packages/cloud/src/engines/docker/client/docker-client.ts';
import type { ListedContainer } from '../packages/cloud/src/engines/docker/client/docker-objects.ts';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { listWorkers } from '../packages/testing/src/deploy-handler.ts';
import { createPythonImage } from '../packages/testing/src/docker-python-image.ts';
import type { PythonImage } from '../packages/testing/src/docker-python-image.ts';
import { acceleratedPythonSdk } from '../packages/testing/src/python-sdks.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { withDocker } from '../packages/testing/src/with-docker.ts';

/**
 * The handler of an image that nobody changed. It answers with where its hook is and whether it may write
 * there.
 */
const HANDLER = `
import os, sys, runpod

def handler(job):
    hook = next((path for path in os.environ["PYTHONPATH"].split(":") if "berth" in path), None)
    return {
        "n": job["input"]["n"],
        "hook": hook,
        "writable": hook is not None and os.access(hook, os.W_OK),
        "path": os.environ["PYTHONPATH"].split(":")[-1],
    }

runpod.serverless.start({"handler": handler})
`;
const START_MS = 120_000;

const sdk = acceleratedPythonSdk();
if (typeof sdk === 'string') test('acceleration in a container', { skip: sdk }, () => undefined);
else
  await withDocker((host) => {
    describe('acceleration in a container', () => {
      let database: TestDatabase;
      let server: ServerProcess;
      let image: PythonImage;
      let client: ApiClient;
      before(async () => {
        image = await createPythonImage(host, `localhost/berth-python:p${process.pid}`, sdk.python);
        database = await createTestDatabase('sqlite');
        server = await startServerProcess(database, { BERTH_DOCKER: host });
        client = server.client();
        await waitFor('the data center of Docker', async () => {
          const { text } = await client.call('GET', '/v2/catalog/datacenters');
          return text.includes('DOCKER-1');
        });
      });
      after(async () => {
        const { body } = await client.call<{ endpoints: { id: string }[] }>('GET', '/v2/serverless');
        for (const { id } of body.endpoints) await client.call('DELETE', `/v2/serverless/${id}`);
        const docker = new DockerClient(host);
        await waitFor(
          'the containers are gone',
          async () =>
            (
              await docker.get<ListedContainer[]>('/containers/json', {
                all: true,
                filters: { ancestor: [image.name] },
              })
            ).length === 0,
          60_000,
        );
        await server?.stop();
        await database?.drop();
        await image?.remove();
      });

      const deploy = async (name: string, accelerate: boolean): Promise<string> => {
        const { status, text, body } = await client.call<{ id: string }>('POST', '/v2/serverless', {
          name,
          type: 'QUEUE',
          image: image.name,
          cmd: [image.python, '-c', HANDLER],
          cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
          scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
          workers: { min: 0, max: 1 },
          env: { RUNPOD_SKIP_AUTO_SYSTEM_CHECKS: 'true', RUNPOD_SKIP_GPU_CHECK: 'true' },
          accelerate,
        });
        assert.equal(status, 201, text);
        return body.id;
      };
      const run = async (endpoint: string, n: number): Promise<Record<string, unknown>> => {
        const { body } = await client.call<{ id: string }>('POST', `/v2/${endpoint}/run`, { input: { n } });
        const job = await waitFor(
          `the end of job ${n}`,
          async () => {
            const found = await client.call<{ status: string; output: Record<string, unknown> }>(
              'GET',
              `/v2/${endpoint}/status/${body.id}`,
            );
            return ['COMPLETED', 'FAILED'].includes(found.body.status) && found;
          },
          START_MS,
        );
        assert.equal(job.body.status, 'COMPLETED', job.text);
        return job.body.output;
      };

      test('the unchanged image speaks the fast channel, by a hook that is mounted read-only', async () => {
        const endpoint = await deploy('accelerated', true);
        assert.deepEqual(await run(endpoint, 1), {
          n: 1,
          hook: '/opt/berth/berth_worker/accelerate/path',
          writable: false,
          path: '/site-packages',
        });
        const [worker] = await listWorkers(client, endpoint);
        assert.equal(worker?.accelerated, true);
        for (let n = 2; n < 20; n += 1) assert.equal((await run(endpoint, n))['n'], n);
        const logs = await client.call(
          'GET',
          `/v2/serverless/${endpoint}/workers/${worker?.id}/logs?follow=false`,
        );
        assert.match(logs.text, /This worker is accelerated: runpod /);
      });

      test('without the setting the same image runs as it is', async () => {
        const endpoint = await deploy('unchanged', false);
        assert.deepEqual(await run(endpoint, 1), {
          n: 1,
          hook: null,
          writable: false,
          path: '/site-packages',
        });
        assert.equal((await listWorkers(client, endpoint))[0]?.accelerated, false);
      });
    });
  });
