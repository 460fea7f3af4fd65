import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { clearedServerFixture } from '../../../packages/testing/src/cleared-server-fixture.ts';
import { installedPython, runPythonForJson } from '../python-programs.ts';
import { flashEnvironment, uploadStandInImage } from './flash-environment.ts';

const python = installedPython('flash');

const CALLS = `
import asyncio, json
from runpod_flash import Endpoint, GpuType

@Endpoint(name="adder", gpu=GpuType.NVIDIA_GEFORCE_RTX_4090, workers=(1, 1))
async def add(a, b):
    print("adding", a, b)
    return {"sum": a + b, "kind": type(a)}

@Endpoint(name="small", cpu="cpu3c-2-4", workers=(0, 1))
def divide(a, b):
    return a / b

async def main():
    told = {}
    answers = await asyncio.gather(*(add(number, b=1) for number in range(3)))
    told["sums"] = [answer["sum"] for answer in answers]
    told["kind"] = answers[0]["kind"] is int
    told["half"] = await divide(1, 2)
    try:
        await divide(1, 0)
    except Exception as error:
        told["raised"] = str(error).splitlines()[0]
    print("SAID " + json.dumps(told))

asyncio.run(main())
`;

/** An endpoint that exists already, by its id: flash as a plain client. */
const CLIENT = `
import asyncio, json, os
from runpod_flash import Endpoint

async def main():
    endpoint = Endpoint(id=os.environ["ENDPOINT"])
    told = {}
    job = await endpoint.run({"message": "hello"})
    await job.wait(timeout=60)
    told["run"] = [job.done, job.output]
    told["runsync"] = (await endpoint.runsync({"message": "again"})).output
    waiting = await Endpoint(id=os.environ["IDLE"]).run({"message": "never"})
    await waiting.cancel()
    told["cancelled"] = await waiting.status()
    print("SAID " + json.dumps(told))

asyncio.run(main())
`;

describe('flash', { concurrency: false }, () => {
  const fixture = clearedServerFixture();
  let image: string;
  before(
    async () => void (image = await uploadStandInImage(fixture.operator, python, 'flash', 'live-worker.py')),
  );
  const environment = (): Record<string, string> => flashEnvironment(fixture.server);

  test('makes an endpoint of a function and calls it, on GPUs and on CPUs', async () => {
    const told = await runPythonForJson(python, CALLS, {
      ...environment(),
      FLASH_IS_LIVE_PROVISIONING: 'true',
      FLASH_GPU_IMAGE: image,
      FLASH_CPU_IMAGE: image,
    });
    assert.deepEqual(told, {
      sums: [1, 2, 3],
      kind: true,
      half: 0.5,
      raised: 'Remote execution failed: division by zero',
    });
    const { body } = await fixture.operator.call<{
      endpoints: {
        name: string;
        gpu?: { pools: string[] };
        cpu?: { id: string }[];
        workers: { max: number };
      }[];
    }>('GET', '/v2/serverless');
    assert.deepEqual(body.endpoints.map(({ name }) => name).sort(), ['live-adder', 'live-small']);
    assert.deepEqual(body.endpoints.find(({ name }) => name === 'live-adder')?.gpu?.pools, ['ADA_24']);
    assert.equal(body.endpoints.find(({ name }) => name === 'live-small')?.cpu?.[0]?.id, 'cpu3c');
  });

  test('finds the ready workers and their last lines', async () => {
    const client = fixture.server.client();
    const { body } = await client.call<{ endpoints: { id: string; name: string }[] }>(
      'GET',
      '/v2/serverless',
    );
    const id = body.endpoints.find(({ name }) => name === 'live-adder')?.id ?? '';
    const metrics = await client.call<{ workers: Record<string, number>; readyWorkers: string[] }>(
      'GET',
      `/v2/${id}/metrics`,
    );
    assert.deepEqual(
      [metrics.status, metrics.body.readyWorkers.length],
      [200, metrics.body.workers['ready']],
    );
    assert.deepEqual(Object.keys(metrics.body.workers).sort(), [
      'idle',
      'initializing',
      'ready',
      'running',
      'throttled',
      'unhealthy',
    ]);
    const [worker = ''] = metrics.body.readyWorkers;
    const logs = await fixture.operator.call<{ container: string[]; system: string[] }>(
      'GET',
      `/v1/pod/${worker}/logs`,
    );
    assert.equal(logs.status, 200, logs.text);
    assert.ok(
      logs.body.container.some((line) => /^\d{4}-\d\d-\d\dT[\d:.]+Z .*Finished/.test(line)),
      logs.text,
    );
    assert.equal((await fixture.operator.call('GET', '/v1/pod/nosuchworker/logs')).status, 404);
    assert.equal(
      (await (await fixture.createAccount('stranger')).call('GET', `/v1/pod/${worker}/logs`)).status,
      404,
    );
  });

  test('calls an endpoint that is there already', async () => {
    const make = async (max: number): Promise<string> =>
      (
        await fixture.operator.call<{ id: string }>('POST', '/v2/serverless', {
          name: 'echo',
          type: 'QUEUE',
          image: 'local/echo',
          cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
          scaling: { type: 'QUEUE_DELAY', queueDelay: 1 },
          workers: { min: 0, max },
        })
      ).body.id;
    const told = await runPythonForJson(python, CLIENT, {
      ...environment(),
      ENDPOINT: await make(1),
      IDLE: await make(0),
    });
    assert.deepEqual(told, {
      run: [true, { message: 'hello' }],
      runsync: { message: 'again' },
      cancelled: 'CANCELLED',
    });
  });
});
